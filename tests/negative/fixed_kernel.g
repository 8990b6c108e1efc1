graph g(x: f32[8, 4]) -> (y: f32[4]) {
  kernel a {
    s = sum(x, axis=1)
    # error@+1 fixed-kernel: this cannot be in its `kernel` block
    y = sum(x * 2.0, axis=0) + s[0]
  }
}
