graph g(x: f32[4]) -> (y: f32[4]) {
  y = relu(x)
# error@+1 syntax: unexpected end of file, expected a statement or `}`
