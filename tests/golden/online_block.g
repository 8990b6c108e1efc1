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

graph logarithms(q: bf16[2, 6, M, 16], k: bf16[2, 3, 40, 16], v: bf16[2, 3, 40, 8], x: bf16[M, 16], w: bf16[200, 16], t: i32[M]) -> (y: bf16[2, 6, M, 8], l: f32[2, 6, M], loss: bf16, z: f32[M, 40]) {
  y, l = attention_lse(q, k, v, is_causal=true, enable_gqa=true)
  loss = linear_cross_entropy(x, w, t)
  online {
    z = log_softmax(matmul(x, transpose(w[:40]), out=f32))
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
#|
#| graph logarithms(q: bf16[2, 6, M, 16], k: bf16[2, 3, 40, 16], v: bf16[2, 3, 40, 8], x: bf16[M, 16], w: bf16[200, 16], t: i32[M]) -> (y: bf16[2, 6, M, 8], l: f32[2, 6, M], loss: bf16[], z: f32[M, 40]) {
#|   v6 = reshape(q, [2, 3, 2, M, 16])
#|   v7 = reshape(k, [2, 3, 1, 40, 16])
#|   v8 = reshape(v, [2, 3, 1, 40, 8])
#|   v9 = transpose(v7, perm=[0, 1, 2, 4, 3])
#|   v10 = matmul(v6, v9, out=f32)
#|   v11 = const(16.0, f32)
#|   v12 = sqrt(v11)
#|   v13 = const(1.0, f32)
#|   v14 = div(v13, v12)
#|   v15 = mul(v10, v14)
#|   v16 = iota([M, 40], axis=1)
#|   v17 = iota([M, 40], axis=0)
#|   v18 = less_equal(v16, v17)
#|   v19 = const(-inf, f32)
#|   v20 = where(v18, v15, v19)
#|   v21 = softmax_matmul(v20, v8)
#|   v22 = const(0.0, f32)
#|   v23 = softmax_lse(v20, v8)
#|   v24 = slice(v23, begin=[0, 0, 0, 0, 0], shape=[2, 3, 2, M, 1])
#|   v25 = reshape(v24, [2, 3, 2, M])
#|   y = reshape(v21, [2, 6, M, 8])
#|   l = reshape(v25, [2, 6, M])
#|   v28 = transpose(w, perm=[1, 0])
#|   v29 = matmul(x, v28, out=f32)
#|   v30 = expand(v22, [200, 1])
#|   v31 = softmax_lse(v29, v30)
#|   v32 = reshape(v31, [M])
#|   v33 = cast(x, f32)
#|   v34 = gather(w, t, axis=0)
#|   v35 = cast(v34, f32)
#|   v36 = mul(v33, v35)
#|   v37 = sum(v36, axis=[1])
#|   v38 = const(-100, i32)
#|   v39 = not_equal(t, v38)
#|   v40 = sub(v32, v37)
#|   v41 = where(v39, v40, v22)
#|   v42 = sum(v41, axis=[0])
#|   v43 = cast(v39, f32)
#|   v44 = sum(v43, axis=[0])
#|   v45 = div(v42, v44)
#|   loss = cast(v45, bf16)
#|   v47 = slice(w, begin=[0, 0], shape=[40, 16])
#|   v48 = transpose(v47, perm=[1, 0])
#|   v49 = matmul(x, v48, out=f32)
#|   v50 = expand(v22, [40, 1])
#|   v51 = softmax_lse(v49, v50)
#|   z = sub(v49, v51)
#| }
