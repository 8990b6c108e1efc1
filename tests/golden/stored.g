# Eight-bit floats: stored, moved, selected and multiplied.
graph stored(x: f8e4m3[4, 8], w: f8e4m3[8, 3], s: f32[4, 1], h: f32[4, 8]) -> (
    p: f32[4, 3], q: f8e4m3[4, 3], r: f8e5m2[4, 8], t: f8e4m3[8, 4], u: bool[4, 8], v: u8[4, 8], z: f8e4m3[4, 10]) {
  p = matmul(x, w, out=f32) * s
  q = x @ w
  r = cast(h, f8e5m2)
  t = transpose(where(h > 0, x, 1.5))
  u = x == 448
  v = bitcast(x, u8)
  z = pad(concat([x, x], axis=1)[:, 4:12], low=[0, 1], high=[0, 1], value=-0.001953125)
}
#| graph stored(x: f8e4m3[4, 8], w: f8e4m3[8, 3], s: f32[4, 1], h: f32[4, 8]) -> (p: f32[4, 3], q: f8e4m3[4, 3], r: f8e5m2[4, 8], t: f8e4m3[8, 4], u: bool[4, 8], v: u8[4, 8], z: f8e4m3[4, 10]) {
#|   v4 = matmul(x, w, out=f32)
#|   p = mul(v4, s)
#|   q = matmul(x, w)
#|   r = cast(h, f8e5m2)
#|   v8 = const(0.0, f32)
#|   v9 = greater(h, v8)
#|   v10 = const(1.5, f8e4m3)
#|   v11 = where(v9, x, v10)
#|   t = transpose(v11, perm=[1, 0])
#|   v13 = const(4.5e+02, f8e4m3)
#|   u = equal(x, v13)
#|   v = bitcast(x, u8)
#|   v16 = concat([x, x], axis=1)
#|   v17 = slice(v16, begin=[0, 4], shape=[4, 8])
#|   z = pad(v17, low=[0, 1], high=[0, 1], value=-0.002)
#| }
