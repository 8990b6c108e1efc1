dim N in 0..9

graph g(x: f32[N, 4], h: bf16[N, 4], v: i8[4, 8], w: f32[4, 8], e: f8e5m2[4, 8]) -> (y: f32[N, 4]) {
  # error@+1 dtype-mismatch: scores of `quantize_matmul` are f32
  a = quantize_matmul(h, v)
  # error@+1 dtype-mismatch: multiplies values of f32 by weights of their dtype, not i8
  b = quantize_matmul(x, w, dtype=i8)
  # error@+1 bad-argument: `scale` of `quantize_matmul` is 0
  c = quantize_matmul(x, v, scale=0)
  # error@+1 bad-argument: `least` of `quantize_matmul` is -1
  d = quantize_matmul(x, v, least=-1)
  # error@+1 unsupported-dtype: a product of f32 gives no i8
  f = quantize_matmul(x, v, out=i8)
  y = x
}
