dim B in 1..8
graph g(x: f32[B]) -> (y: f32[B]) {
  # error@+1 bad-argument: `if` needs true or false, known while compiling, not a tensor bool[B] (help: Write where(condition, a, b) to choose for each element.
  a = x if x > 0 else -x
  # error@+1 bad-argument: `if` needs true or false, known while compiling, not the integer `1`
  b = x if 1 else -x
  # error@+1 bad-dim: `B > 4` holds for some values of the dims only
  c = x if B > 4 else -x
  # error@+1 bad-dim: `B == 4` holds for some values of the dims only
  d = x if B == 4 else -x
  # error@+1 syntax: unexpected end of line, expected an operator or `else`
  e = x if B > 0
  # error@+1 bad-argument: `error` takes a string, not the integer `3`
  f = x if false else error(3)
  # error@+1 bad-argument: `mode` is nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area
  h = interpolate(reshape(x, [1, 1, B]), 2, mode="cosine")
  # error@+1 bad-argument: `reduction` is mean, sum or none
  k = mse_loss(x, x, reduction="max")
  # error@+1 bad-argument: `most` takes an integer, not a tensor f32[B]
  l = most(x)
  y = x if B > 0 else z
}
