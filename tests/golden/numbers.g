# Literals take the dtype of the tensor beside them; arithmetic between literals is done at once.
graph numbers(h: bf16[4], d: f64[4], i: i32[4]) -> (p: bf16[4], q: f64[4], r: i32[4], s: f32) {
  p = where(h > 0, h * 0.1, -inf) + 2 * 3
  q = clamp(d / (1.0 / 3), -1e300, 1e300) + const(-0.0, f64)
  r = cast(cast(1.5, i32), i32) + i % 7 - cast(true, i32)
  s = cast(1, f32) + nan + 16777216
}
#| graph numbers(h: bf16[4], d: f64[4], i: i32[4]) -> (p: bf16[4], q: f64[4], r: i32[4], s: f32[]) {
#|   v3 = const(0.0, bf16)
#|   v4 = greater(h, v3)
#|   v5 = const(0.1, bf16)
#|   v6 = mul(h, v5)
#|   v7 = const(-inf, bf16)
#|   v8 = where(v4, v6, v7)
#|   v9 = const(6.0, bf16)
#|   p = add(v8, v9)
#|   v11 = const(0.3333333333333333, f64)
#|   v12 = div(d, v11)
#|   v13 = const(-1e+300, f64)
#|   v14 = const(1e+300, f64)
#|   v15 = clamp(v12, v13, v14)
#|   v16 = const(-0.0, f64)
#|   q = add(v15, v16)
#|   v18 = const(1.5, f32)
#|   v19 = cast(v18, i32)
#|   v20 = const(7, i32)
#|   v21 = rem(i, v20)
#|   v22 = add(v19, v21)
#|   v23 = const(true, bool)
#|   v24 = cast(v23, i32)
#|   r = sub(v22, v24)
#|   v26 = const(1.0, f32)
#|   v27 = const(nan, f32)
#|   v28 = add(v26, v27)
#|   v29 = const(16777216.0, f32)
#|   s = add(v28, v29)
#| }
