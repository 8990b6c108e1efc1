dim B in 1..64
dim T in 1..100

graph sorts(x: f32[B, T], y: f32[B, 7]) -> (a: f32[B, T], b: i32[B, T], c: f32[B, 1], d: i32[B, 1], e: f32[B], f: i32[B, 7]) {
  a, b = sort(x, descending=true)
  c, d = topk(x, 1, largest=false)
  e = median(x)
  f = searchsorted(a, y, right=true)
}

graph picks(x: f32[B, 64]) -> (y: f32[B, 4], i: i32[B, 4]) {
  y, i = topk(x, 4)
}
#| dim B in 1..64
#| dim T in 1..100
#|
#| graph sorts(x: f32[B, T], y: f32[B, 7]) -> (a: f32[B, T], b: i32[B, T], c: f32[B, 1], d: i32[B, 1], e: f32[B], f: i32[B, 7]) {
#|   b = argsort_descending(x, axis=1)
#|   v3 = reshape(b, [B, T, 1])
#|   v4 = iota([B, 1, 1], axis=0)
#|   v5 = iota([T + 1], axis=0)
#|   v6 = slice(v5, begin=[T], shape=[1])
#|   v7 = mul(v4, v6)
#|   v8 = expand(v7, [B, T, 1])
#|   v9 = add(v8, v3)
#|   v10 = reshape(x, [B*T])
#|   v11 = gather(v10, v9, axis=0)
#|   a = reshape(v11, [B, T])
#|   v13 = argsort(x, axis=1)
#|   d = slice(v13, begin=[0, 0], shape=[B, 1])
#|   v15 = reshape(d, [B, 1, 1])
#|   v16 = add(v7, v15)
#|   v17 = gather(v10, v16, axis=0)
#|   c = reshape(v17, [B, 1])
#|   v19 = reshape(v13, [B, T, 1])
#|   v20 = add(v8, v19)
#|   v21 = gather(v10, v20, axis=0)
#|   v22 = reshape(v21, [B, T])
#|   v23 = slice(v22, begin=[0, ((T + 1) / (2)) - 1], shape=[B, 1])
#|   v24 = slice(v22, begin=[0, T - 1], shape=[B, 1])
#|   v25 = not_equal(v24, v24)
#|   v26 = where(v25, v24, v23)
#|   e = reshape(v26, [B])
#|   v28 = const(0, i32)
#|   v29 = expand(v28, [B, 7])
#|   f = loop k in 0:7 with n_before = v29 {
#|     v30 = const([64, 32, 16, 8, 4, 2, 1][k], i32)
#|     v31 = add(n_before, v30)
#|     v32 = minimum(v31, v6)
#|     v33 = const(1, i32)
#|     v34 = sub(v32, v33)
#|     v35 = reshape(v34, [B, 7, 1])
#|     v36 = expand(v7, [B, 7, 1])
#|     v37 = add(v36, v35)
#|     v38 = reshape(a, [B*T])
#|     v39 = gather(v38, v37, axis=0)
#|     v40 = reshape(v39, [B, 7])
#|     v41 = less(y, v40)
#|     v42 = not_equal(v40, v40)
#|     v43 = equal(y, y)
#|     v44 = logical_and(v42, v43)
#|     v45 = logical_or(v41, v44)
#|     v46 = logical_not(v45)
#|     v47 = less_equal(v31, v6)
#|     v48 = logical_and(v47, v46)
#|     v49 = where(v48, v31, n_before)
#|     return v49
#|   }
#| }
#|
#| graph picks(x: f32[B, 64]) -> (y: f32[B, 4], i: i32[B, 4]) {
#|   v1 = argsort_descending(x, axis=1)
#|   i = slice(v1, begin=[0, 0], shape=[B, 4])
#|   v3 = reshape(i, [B, 4, 1])
#|   v4 = iota([B, 1, 1], axis=0)
#|   v5 = const(64, i32)
#|   v6 = expand(v5, [1])
#|   v7 = mul(v4, v6)
#|   v8 = expand(v7, [B, 4, 1])
#|   v9 = add(v8, v3)
#|   v10 = reshape(x, [64*B])
#|   v11 = gather(v10, v9, axis=0)
#|   y = reshape(v11, [B, 4])
#| }
