dim S in 4..512

graph updates(cache: f32[3, S, 8], k: f32[3, 1, 8], at: i64, p: i32[3]) -> (new: f32[3, S, 8], b: f32[3, S, 8], c: f32[3, 2, 8]) {
  new = dynamic_update_slice(cache, k * 2.0, [0, at, 0])
  b = dynamic_update_slice(new, k, p)
  c = dynamic_slice(b, [0, at, 0], [3, 2, 8])
}
#| dim S in 4..512
#|
#| graph updates(cache: f32[3, S, 8], k: f32[3, 1, 8], at: i64[], p: i32[3]) -> (new: f32[3, S, 8], b: f32[3, S, 8], c: f32[3, 2, 8]) {
#|   v4 = const(2.0, f32)
#|   v5 = mul(k, v4)
#|   v6 = const(0, i64)
#|   v7 = reshape(v6, [1])
#|   v8 = reshape(at, [1])
#|   v9 = concat([v7, v8, v7], axis=0)
#|   new = dynamic_update_slice(cache, v5, v9)
#|   b = dynamic_update_slice(new, k, p)
#|   v12 = iota([S - 1], axis=0, dtype=i64)
#|   v13 = slice(v12, begin=[S - 2], shape=[1])
#|   v14 = reshape(v13, [])
#|   v15 = maximum(at, v6)
#|   v16 = minimum(v15, v14)
#|   v17 = iota([2], axis=0, dtype=i64)
#|   v18 = add(v16, v17)
#|   c = gather(b, v18, axis=1)
#| }
