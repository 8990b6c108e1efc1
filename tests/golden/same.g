# What is written several times is computed once, in each block by itself.
def norm(x) = x / sum(x, axis=1, keep=true)

graph same(x: f32[8, 4], w: f32[4, 4]) -> (a: f32[8, 4], b: f32[8, 4], c: f32[8, 4], d: f32[8, 4],
                                           e: f32[8, 4]) {
  a = silu(x @ w) * (x @ w)
  b = norm(x @ w) - norm(x @ w) * 2.0
  c = x * 0.0 + x * -0.0 + max(x, axis=1, keep=true) + max(x, axis=0, keep=true)
  fuse must {
    p = exp(x)
    d = p + exp(x) * sum(p, axis=1, keep=true)
  }
  e = exp(x) - x[:, 1:2] - x[:, 0:1] - x[:, 1:2]
}

#| graph same(x: f32[8, 4], w: f32[4, 4]) -> (a: f32[8, 4], b: f32[8, 4], c: f32[8, 4], d: f32[8, 4], e: f32[8, 4]) {
#|   v2 = matmul(x, w)
#|   v3 = silu(v2)
#|   a = mul(v3, v2)
#|   v5 = sum(v2, axis=[1], keep=true)
#|   v6 = div(v2, v5)
#|   v7 = const(2.0, f32)
#|   v8 = mul(v6, v7)
#|   b = sub(v6, v8)
#|   v10 = const(0.0, f32)
#|   v11 = mul(x, v10)
#|   v12 = const(-0.0, f32)
#|   v13 = mul(x, v12)
#|   v14 = add(v11, v13)
#|   v15 = max(x, axis=[1], keep=true)
#|   v16 = add(v14, v15)
#|   v17 = max(x, axis=[0], keep=true)
#|   c = add(v16, v17)
#|   fuse must {
#|     p = exp(x)
#|     v20 = sum(p, axis=[1], keep=true)
#|     v21 = mul(p, v20)
#|     d = add(p, v21)
#|   }
#|   v23 = exp(x)
#|   v24 = slice(x, begin=[0, 1], shape=[8, 1])
#|   v25 = sub(v23, v24)
#|   v26 = slice(x, begin=[0, 0], shape=[8, 1])
#|   v27 = sub(v25, v26)
#|   e = sub(v27, v24)
#| }
