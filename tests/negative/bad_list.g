# Parts and repetitions of lists.
dim B in 1..64
graph g(x: f32[B, 8]) -> (y: f32[B, 8]) {
  # error@+1 bad-argument: a part of a list has no step
  a = x.shape[0:1:1]
  # error@+1 bad-argument: a list is cut at a constant integer, not
  b = x.shape[:B]
  # error@+1 bad-argument: a list is repeated a constant number of times, not
  c = [1] * B
  # error@+1 slice-bounds: bound 9 of a list of 2
  d = x.shape[:9]
  # error@+1 slice-bounds: bound -3 of a list of 2
  e = x.shape[-3:]
  # error@+1 bad-argument: `len` counts the items of a list, not
  g = len(x)
  # error@+1 limit: list of more than 4096 items
  f = [1] * 5000
  y = reshape(x, x.shape[:1] + [1] * 1 + x.shape[1:])[:, 0]
}
