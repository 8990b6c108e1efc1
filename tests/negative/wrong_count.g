def pair(x) { return x, x * 2 }
graph g(x: f32[9]) -> (y: f32[9]) {
  # error@+1 wrong-count: 2 names for 3 values
  a, b = split(x, 3)
  # error@+1 wrong-count: 2 names for 1 value
  c, d = relu(x)
  # error@+1 wrong-count: 3 names for 2 values
  e, f, h = pair(x)
  y = x + a + b + c + d + e + f + h
}
