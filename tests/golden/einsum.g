# Sums of products: of matrices, of elements, of one operand, along a diagonal.
dim B in 1..64
dim S in 1..4096
graph einsum_(q: f16[B, S, 8, 64], k: f16[B, S, 8, 64], m: f32[5, 5]) -> (s: f16[B, 8, S, S], t: f32[5, 5], d: f32[]) {
  s = einsum("bqhd,bkhd->bhqk", q, k)
  t = einsum("ij,jk,j->ki", m, m, m[0])
  d = einsum("ii", m)
}
#| dim B in 1..64
#| dim S in 1..4096
#|
#| graph einsum_(q: f16[B, S, 8, 64], k: f16[B, S, 8, 64], m: f32[5, 5]) -> (s: f16[B, 8, S, S], t: f32[5, 5], d: f32[]) {
#|   v3 = transpose(q, perm=[0, 2, 1, 3])
#|   v4 = transpose(k, perm=[0, 2, 3, 1])
#|   s = matmul(v3, v4)
#|   v6 = slice(m, begin=[0, 0], shape=[1, 5])
#|   v7 = reshape(v6, [5])
#|   v8 = reshape(m, [5, 5, 1])
#|   v9 = transpose(m, perm=[1, 0])
#|   v10 = reshape(v9, [5, 1, 5])
#|   v11 = mul(v8, v10)
#|   v12 = transpose(v11, perm=[1, 2, 0])
#|   v13 = reshape(v12, [25, 5])
#|   v14 = reshape(v7, [5, 1])
#|   v15 = matmul(v13, v14)
#|   t = reshape(v15, [5, 5])
#|   v17 = reshape(m, [25])
#|   v18 = pad(v17, low=[0], high=[5], value=0.0)
#|   v19 = reshape(v18, [5, 6])
#|   v20 = slice(v19, begin=[0, 0], shape=[5, 1])
#|   v21 = reshape(v20, [5])
#|   d = sum(v21, axis=[0])
#| }
