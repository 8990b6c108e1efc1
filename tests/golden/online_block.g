dim M in 1..100
dim N in 1..100

graph blocks(q: bf16[2, 6, M, 16], k: bf16[2, 3, N, 16], v: bf16[2, 3, N, 8], b: bf16[2, 1, M, N], online: f32[M, N], w: f32[N, 8]) -> (y: bf16[2, 6, M, 8], z: f32[M, 8]) {
  y = attention(q, k, v, b, is_causal=true, enable_gqa=true)
  online {
    s = online * 0.5
    e = exp(s - max(s, axis=1, keep=true))
    z = (e @ w) / sum(e, axis=1, keep=true)
  }
}
#| dim M in 1..100
#| dim N in 1..100
#|
#| graph blocks(q: bf16[2, 6, M, 16], k: bf16[2, 3, N, 16], v: bf16[2, 3, N, 8], b: bf16[2, 1, M, N], online: f32[M, N], w: f32[N, 8]) -> (y: bf16[2, 6, M, 8], z: f32[M, 8]) {
#|   v6 = reshape(b, [2, 1, 1, M, N])
#|   v7 = reshape(q, [2, 3, 2, M, 16])
#|   v8 = reshape(k, [2, 3, 1, N, 16])
#|   v9 = reshape(v, [2, 3, 1, N, 8])
#|   v10 = transpose(v8, perm=[0, 1, 2, 4, 3])
#|   v11 = matmul(v7, v10, out=f32)
#|   v12 = const(16.0, f32)
#|   v13 = sqrt(v12)
#|   v14 = const(1.0, f32)
#|   v15 = div(v14, v13)
#|   v16 = mul(v11, v15)
#|   v17 = cast(v6, f32)
#|   v18 = add(v16, v17)
#|   v19 = iota([M, N], axis=1)
#|   v20 = iota([M, N], axis=0)
#|   v21 = less_equal(v19, v20)
#|   v22 = const(-inf, f32)
#|   v23 = where(v21, v18, v22)
#|   v24 = softmax_matmul(v23, v9)
#|   y = reshape(v24, [2, 6, M, 8])
#|   v26 = const(0.5, f32)
#|   s = mul(online, v26)
#|   z = softmax_matmul(s, w)
#| }
