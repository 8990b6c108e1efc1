graph g(x: f32[4096, 2048], w: f32[2048, 2048]) -> (p: f32[4096, 2048]) {
  fuse must {
    # error@+1 fuse-must: `matmul` of `x @ w` is stored before `max` of `softmax(x @ w)` reads it (note: `matmul` of `x @ w` is made here
    p = softmax(x @ w)
  }
}
