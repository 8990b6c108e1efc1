dim B in 1..64
dim H in 1..64 mult 4
graph g(x: f32[B, 12], z: f32[H]) -> (y: f32[B, 12]) {
  # error@+1 bad-reshape: cannot reshape (B, 12) into (B, 13): element counts differ (note: `x` is f32[B, 12]
  a = reshape(x, [B, 13])
  # error@+1 bad-reshape: only one extent may be -1
  b = reshape(x, [-1, -1])
  # error@+1 bad-reshape: cannot reshape (B, 12) into (-1, 5): element counts differ
  c = reshape(x, [-1, 5])
  # H is a multiple of 4, so this one holds.
  d = reshape(z, [-1, 4])
  # error@+1 bad-reshape: cannot reshape (H,) into (-1, 8): element counts differ
  e = reshape(z, [-1, 8])
  y = x + sum(d)
}
