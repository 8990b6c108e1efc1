# `@` with rank-1 operands and batch axes; `matmul` with a precision.
dim B in 1..64
graph matmuls(a: f32[B, 4, 8], b: f32[8, 3], v: f32[8], w: f32[4]) -> (
    p: f32[B, 4, 3], q: f32[B, 4], r: f32[B, 8], s: f32, t: f32[B, 4, 3], u: f32[B, 4]) {
  p = a @ b
  q = a @ v
  r = w @ a
  s = v @ v
  t = matmul(a, b, precision="tf32") + matmul(a, b, precision="full")
  u = matmul(a, v, precision="tf32")
}
#| dim B in 1..64
#|
#| graph matmuls(a: f32[B, 4, 8], b: f32[8, 3], v: f32[8], w: f32[4]) -> (p: f32[B, 4, 3], q: f32[B, 4], r: f32[B, 8], s: f32[], t: f32[B, 4, 3], u: f32[B, 4]) {
#|   p = matmul(a, b)
#|   v5 = reshape(v, [8, 1])
#|   v6 = matmul(a, v5)
#|   q = reshape(v6, [B, 4])
#|   v8 = reshape(w, [1, 4])
#|   v9 = matmul(v8, a)
#|   r = reshape(v9, [B, 8])
#|   v11 = reshape(v, [1, 8])
#|   v12 = matmul(v11, v5)
#|   s = reshape(v12, [])
#|   v14 = matmul(a, b, precision="tf32")
#|   t = add(v14, p)
#|   v16 = matmul(a, v5, precision="tf32")
#|   u = reshape(v16, [B, 4])
#| }
