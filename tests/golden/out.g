# Products in the dtype in which they are computed.
graph products(a: bf16[4, 8], b: bf16[8, 3], i: i8[4, 8], j: u8[8, 3], w: bf16[5, 8], c: f32[5]) -> (
    p: f32[4, 3], q: i32[4, 4], r: bf16[4, 3], s: f32[4, 5], t: i32[3, 3], u: f32[4],
    v: f32[3, 4], z: f32[8]) {
  p = matmul(a, b, out=f32)
  q = bmm(unsqueeze(i, 0), unsqueeze(transpose(i), 0), out=i32)[0]
  r = matmul(a, b, out=bf16)
  s = linear(a, w, c, out=f32)
  t = matmul(transpose(j), j, out=i32)
  u = matmul(a, b[:, 0], out=f32)
  v = einsum("ij,jk,i->ki", a, b, a[:, 0], out=f32)
  z = einsum("ij->j", a, out=f32)
}
#| graph products(a: bf16[4, 8], b: bf16[8, 3], i: i8[4, 8], j: u8[8, 3], w: bf16[5, 8], c: f32[5]) -> (p: f32[4, 3], q: i32[4, 4], r: bf16[4, 3], s: f32[4, 5], t: i32[3, 3], u: f32[4], v: f32[3, 4], z: f32[8]) {
#|   p = matmul(a, b, out=f32)
#|   v7 = reshape(i, [1, 4, 8])
#|   v8 = transpose(i, perm=[1, 0])
#|   v9 = reshape(v8, [1, 8, 4])
#|   v10 = matmul(v7, v9, out=i32)
#|   q = reshape(v10, [4, 4])
#|   r = matmul(a, b)
#|   v13 = transpose(w, perm=[1, 0])
#|   v14 = matmul(a, v13, out=f32)
#|   s = add(v14, c)
#|   v16 = transpose(j, perm=[1, 0])
#|   t = matmul(v16, j, out=i32)
#|   v18 = slice(b, begin=[0, 0], shape=[8, 1])
#|   v19 = reshape(v18, [8])
#|   v20 = reshape(v19, [8, 1])
#|   v21 = matmul(a, v20, out=f32)
#|   u = reshape(v21, [4])
#|   v23 = slice(a, begin=[0, 0], shape=[4, 1])
#|   v24 = reshape(v23, [4])
#|   v25 = transpose(b, perm=[1, 0])
#|   v26 = transpose(a, perm=[1, 0])
#|   v27 = matmul(v25, v26, out=f32)
#|   v28 = cast(v24, f32)
#|   v29 = transpose(v27, perm=[1, 0])
#|   v30 = reshape(v28, [4, 1])
#|   v31 = mul(v29, v30)
#|   v = transpose(v31, perm=[1, 0])
#|   v33 = cast(a, f32)
#|   z = sum(v33, axis=[0])
#| }
