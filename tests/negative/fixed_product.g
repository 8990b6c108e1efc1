graph g(x: f32[8, 8], w: f32[8, 8]) -> (y: f32[8, 8]) {
  kernel a {
    h = x @ w
    # error@+1 fixed-kernel: this cannot be in its `kernel` block: a matmul
    y = h @ w
  }
}
