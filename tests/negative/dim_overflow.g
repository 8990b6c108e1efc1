dim B in 1..4294967296
# error@+2 dim-overflow: a tensor of shape (0, B, B) can pass 2^62 bytes
# error@+1 dim-overflow: a tensor of shape (B, B) can pass 2^62 bytes (help: Narrow the ranges
graph g(x: f32[B, B], z: f32[B], e: f32[0, B, B]) -> (y: f32[B]) {
  # error@+1 dim-overflow: result of `*` can pass 2^62
  a = expand(z, [B * B * B, B])
  # error@+1 dim-overflow: can pass 2^62 bytes
  b = reshape(z, [B, 1]) * reshape(z, [1, B])
  y = z
}
