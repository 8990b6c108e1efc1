graph g(x: f32[64, 100]) -> (y: f32[100]) {
  fuse must {
    s = sum(x, axis=1, keep=true)
    # error@+1 fuse-must: `s` is stored before `p` reads it (note: every edge from one op of this block to another must be fused
    p = x - s
    y = sum(p, axis=0)
  }
}
