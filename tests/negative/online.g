dim N in 0..9

graph g(x: f32[N, 4], h: f16[N, 4], v: f16[4, 8], i: i32[4, 8], w: f32[8, 8], r: f32[4]) -> (y: f32[N, 4]) {
  # error@+1 dtype-mismatch: scores of `softmax_matmul` are f32 where the values are f16, not f16 (help: Write cast(x, f32), or a product with `out=f32`.
  a = softmax_matmul(h, v)
  # error@+1 unsupported-dtype: `softmax_matmul` does not take i32
  b = softmax_matmul(x, i)
  # error@+1 shape-mismatch: contracted extents of `softmax_matmul` differ: (N, 4) and (8, 8)
  c = softmax_matmul(x, w)
  # error@+1 shape-mismatch: `softmax2_matmul` takes ranks of 2 to 7, not 1 (help: Reshape it to a matrix.
  d = softmax2_matmul(r, w)
  # error@+1 unsupported-dtype: a product of f16 gives no bf16
  e = softmax_matmul(x, v, out=bf16)
  # error@+1 shape-mismatch: scores and factor of `softmax_matmul` differ: (N, 4) and (8, 8)
  f = softmax_matmul(x, v, w)
  # error@+1 dtype-mismatch: the factor of `softmax_matmul` is f32 like the scores, not f16
  g = softmax_matmul(x, v, h)
  # error@+1 bad-argument: `softmax_lse` takes no `factor` (help: Factors of weights are not in their sum.
  j = softmax_lse(x, v, x)
  y = x
}
