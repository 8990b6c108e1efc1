graph g(x: f32[8, 8]) -> (y: f32[8, 8]) {
  # error@+1 bad-argument: `parts` must be a list of extents or a count
  a = split(x, 0)
  # error@+1 bad-argument: an extent of `parts` must be a nonnegative integer
  b = split(x, [9, -1])
  # error@+1 bad-argument: `value` must be a number
  c = pad(x, low=[0, 0], high=[0, 0], value="zero")
  # error@+1 bad-argument: `const` takes a number
  d = const(x, f32)
  y = x
}
