graph g(x: f32[4, 6]) -> (y: f32[4, 6]) {
  y = x + 1
  # error@+1 syntax: unexpected `t`: a loop begins with its index and stands alone behind `=` or `return`
  z = relu(loop t in 0:3 with h = x { return h })
}
