graph g(x: f32[8, 8], w: f32[8, 8]) -> (y: f32[8, 8]) {
  kernel a {
    h = x @ w
    # error@+1 no-lowering: `matmul` has no kernel template
    y = h @ w
  }
}
