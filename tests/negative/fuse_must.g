graph g(x: f32[64, 100]) -> (y: f32[100]) {
  fuse must {
    s = sum(x, axis=1, keep=true)
    # error@+1 fuse-must: `s` is stored before `p` reads it (note: this block asks for one kernel
    p = x - s
    y = sum(p, axis=0)
  }
}
