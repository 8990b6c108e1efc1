dim N in 1..100

graph online(x: f32[2, 1, N, 24], v: bf16[2, 3, 24, 8], w: f64[24, 8]) -> (a: bf16[2, 3, N, 8], b: f32[2, 3, N, 8], c: f64[2, 1, N, 8]) {
  a = softmax_matmul(x, v)
  b = softmax2_matmul(x, v, out=f32)
  c = softmax_matmul(cast(x, f64), w)
}
#| dim N in 1..100
#|
#| graph online(x: f32[2, 1, N, 24], v: bf16[2, 3, 24, 8], w: f64[24, 8]) -> (a: bf16[2, 3, N, 8], b: f32[2, 3, N, 8], c: f64[2, 1, N, 8]) {
#|   a = softmax_matmul(x, v)
#|   b = softmax2_matmul(x, v, out=f32)
#|   v5 = cast(x, f64)
#|   c = softmax_matmul(v5, w)
#| }
