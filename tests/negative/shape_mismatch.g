dim B in 1..64
graph g(x: f32[B, 128], bias: f32[100], w: f32[100, 4], s: f32[]) -> (y: f32[B, 128]) {
  # error@+1 shape-mismatch: shapes of `add` do not broadcast: (B, 128) and (100,) (note: `bias` is f32[100]
  a = x + bias
  # error@+1 shape-mismatch: contracted extents of `@` differ: (B, 128) and (100, 4) (note: `w` is f32[100, 4]
  b = x @ w
  # error@+1 shape-mismatch: an operand of `@` is a scalar (help: Write `*` to scale.
  c = x @ s
  # error@+1 shape-mismatch: leading axes of `@` differ
  d = reshape(w, [5, 20, 4]) @ reshape(w, [10, 4, 10])
  # error@+1 shape-mismatch: extents beside the joined axis of `concat` differ: f32[B, 128] and f32[100, 4]
  e = concat([x, w], axis=0)
  # A symbolic dim is never taken for 1, and an extent of one symbol is no other's.
  # error@+1 shape-mismatch: cannot expand (B, 128) to (64, 128)
  f = expand(x, [64, 128])
  # error@+1 shape-mismatch: extent 100 does not divide into 3 equal parts
  h = split(bias, 3)
  # error@+1 shape-mismatch: parts add up to 99, but the extent is 100
  i = split(bias, [50, 49])
  y = x
}
