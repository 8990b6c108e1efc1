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
#|   v4 = const(0, i32)
#|   v5 = maximum(v3, v4)
#|   v6 = iota([T + 1], axis=0)
#|   v7 = slice(v6, begin=[T], shape=[1])
#|   v8 = const(1, i32)
#|   v9 = sub(v7, v8)
#|   v10 = minimum(v5, v9)
#|   v11 = iota([B, T, 1], axis=0)
#|   v12 = mul(v11, v7)
#|   v13 = add(v12, v10)
#|   v14 = iota([2], axis=0)
#|   v15 = slice(v14, begin=[1], shape=[1])
#|   v16 = mul(v13, v15)
#|   v17 = iota([B, T, 1], axis=2)
#|   v18 = add(v16, v17)
#|   v19 = reshape(x, [B*T])
#|   v20 = gather(v19, v18, axis=0)
#|   a = reshape(v20, [B, T])
#|   v22 = argsort(x, axis=1)
#|   d = slice(v22, begin=[0, 0], shape=[B, 1])
#|   v24 = reshape(d, [B, 1, 1])
#|   v25 = maximum(v24, v4)
#|   v26 = minimum(v25, v9)
#|   v27 = iota([B, 1, 1], axis=0)
#|   v28 = mul(v27, v7)
#|   v29 = add(v28, v26)
#|   v30 = mul(v29, v15)
#|   v31 = iota([B, 1, 1], axis=2)
#|   v32 = add(v30, v31)
#|   v33 = gather(v19, v32, axis=0)
#|   c = reshape(v33, [B, 1])
#|   v35 = reshape(v22, [B, T, 1])
#|   v36 = maximum(v35, v4)
#|   v37 = minimum(v36, v9)
#|   v38 = add(v12, v37)
#|   v39 = mul(v38, v15)
#|   v40 = add(v39, v17)
#|   v41 = gather(v19, v40, axis=0)
#|   v42 = reshape(v41, [B, T])
#|   v43 = slice(v42, begin=[0, ((T + 1) / (2)) - 1], shape=[B, 1])
#|   v44 = slice(v42, begin=[0, T - 1], shape=[B, 1])
#|   v45 = not_equal(v44, v44)
#|   v46 = where(v45, v44, v43)
#|   e = reshape(v46, [B])
#|   v48 = expand(v4, [B, 7])
#|   f = loop k in 0:7 with n_before = v48 {
#|     v49 = const([64, 32, 16, 8, 4, 2, 1][k], i32)
#|     v50 = add(n_before, v49)
#|     v51 = minimum(v50, v7)
#|     v52 = sub(v51, v8)
#|     v53 = reshape(v52, [B, 7, 1])
#|     v54 = maximum(v53, v4)
#|     v55 = minimum(v54, v9)
#|     v56 = iota([B, 7, 1], axis=0)
#|     v57 = mul(v56, v7)
#|     v58 = add(v57, v55)
#|     v59 = mul(v58, v15)
#|     v60 = iota([B, 7, 1], axis=2)
#|     v61 = add(v59, v60)
#|     v62 = reshape(a, [B*T])
#|     v63 = gather(v62, v61, axis=0)
#|     v64 = reshape(v63, [B, 7])
#|     v65 = less(y, v64)
#|     v66 = not_equal(v64, v64)
#|     v67 = equal(y, y)
#|     v68 = logical_and(v66, v67)
#|     v69 = logical_or(v65, v68)
#|     v70 = logical_not(v69)
#|     v71 = less_equal(v50, v7)
#|     v72 = logical_and(v71, v70)
#|     v73 = where(v72, v50, n_before)
#|     return v73
#|   }
#| }
#|
#| graph picks(x: f32[B, 64]) -> (y: f32[B, 4], i: i32[B, 4]) {
#|   v1 = iota([B, 64], axis=1)
#|   v2 = argmax(x, axis=1, keep=true)
#|   v3 = const(false, bool)
#|   v4 = const(0, i32)
#|   v5 = where(v3, v2, v4)
#|   v6 = where(v3, v5, v2)
#|   v7 = equal(v1, v6)
#|   v8 = const(-inf, f32)
#|   v9 = where(v7, v8, x)
#|   v10 = argmax(v9, axis=1, keep=true)
#|   v17, v11s, v13s = loop c in 1:-1:-1 with free = v10 {
#|     v11 = const(c, i32)
#|     v12 = equal(v6, v11)
#|     v13 = logical_or(v3, v12)
#|     v14 = where(v13, free, v11)
#|     return v14, v11, v13
#|   }
#|   v18 = equal(v6, v10)
#|   v19 = logical_or(v3, v18)
#|   v20 = where(v19, v17, v10)
#|   v21 = equal(v1, v20)
#|   v22 = where(v21, v8, v9)
#|   v23 = argmax(v22, axis=1, keep=true)
#|   v35, v24s, v28s = loop c_1 in 2:-1:-1 with free_1 = v23 {
#|     items = [v6, v20]
#|     v28, v24s_1 = loop k in 0:2 with found = v3 {
#|       v24 = const(c_1, i32)
#|       v25 = equal(items[k], v24)
#|       v26 = logical_or(found, v25)
#|       return v26, v24
#|     }
#|     v29 = where(v28, free_1, v24s_1[0])
#|     return v29, v24s_1[0], v28
#|   }
#|   items_1 = [v6, v20]
#|   v39 = loop k_1 in 0:2 with found_1 = v3 {
#|     v36 = equal(items_1[k_1], v23)
#|     v37 = logical_or(found_1, v36)
#|     return v37
#|   }
#|   v40 = where(v39, v35, v23)
#|   v41 = equal(v1, v40)
#|   v42 = where(v41, v8, v22)
#|   v43 = argmax(v42, axis=1, keep=true)
#|   v60 = loop c_2 in 3:-1:-1 with free_2 = v43 {
#|     items_2 = [v6, v20, v40]
#|     v50, v44s = loop k_2 in 0:3 with found_2 = v3 {
#|       v44 = const(c_2, i32)
#|       v45 = equal(items_2[k_2], v44)
#|       v46 = logical_or(found_2, v45)
#|       return v46, v44
#|     }
#|     v51 = where(v50, free_2, v44s[0])
#|     return v51
#|   }
#|   items_3 = [v6, v20, v40]
#|   v66 = loop k_3 in 0:3 with found_3 = v3 {
#|     v61 = equal(items_3[k_3], v43)
#|     v62 = logical_or(found_3, v61)
#|     return v62
#|   }
#|   v67 = where(v66, v60, v43)
#|   i = concat([v6, v20, v40, v67], axis=1)
#|   v69 = reshape(i, [B, 4, 1])
#|   v70 = maximum(v69, v4)
#|   v71 = iota([65], axis=0)
#|   v72 = slice(v71, begin=[64], shape=[1])
#|   v73 = sub(v72, v11s[0])
#|   v74 = minimum(v70, v73)
#|   v75 = iota([B, 4, 1], axis=0)
#|   v76 = mul(v75, v72)
#|   v77 = add(v76, v74)
#|   v78 = iota([2], axis=0)
#|   v79 = slice(v78, begin=[1], shape=[1])
#|   v80 = mul(v77, v79)
#|   v81 = iota([B, 4, 1], axis=2)
#|   v82 = add(v80, v81)
#|   v83 = reshape(x, [64*B])
#|   v84 = gather(v83, v82, axis=0)
#|   y = reshape(v84, [B, 4])
#| }
