# Subscripts: negative ends, steps, integers that drop an axis, `...`, symbolic bounds.
dim B in 8..64 mult 8
dim T in 3..100
graph slices(x: f32[B, T, 6]) -> (a: f32[T, 6], b: f32[B, 4], c: f32[B / 2, T, 3], d: f32[B, T, 1],
                                  e: f32[B, T, 6], f: f32[2, 3], g: f32[B - 7, (T + 1) / 2, 2]) {
  a = x[-1]
  b = x[:, 2, 1:-1]
  c = x[::2, ..., 1::2]
  d = x[..., 5:]
  e = x[:, :, 0:6]
  f = x[B / 2 - 1, T - 3:T - 1, ::2]
  g = slice(x, begin=[7, 0, 4], shape=[B - 7, (T + 1) / 2, 2], step=[1, 2, 1])
}
#| dim B in 8..64 mult 8
#| dim T in 3..100
#|
#| graph slices(x: f32[B, T, 6]) -> (a: f32[T, 6], b: f32[B, 4], c: f32[((B) / (2)), T, 3], d: f32[B, T, 1], e: f32[B, T, 6], f: f32[2, 3], g: f32[B - 7, ((T + 1) / (2)), 2]) {
#|   v1 = slice(x, begin=[B - 1, 0, 0], shape=[1, T, 6])
#|   a = reshape(v1, [T, 6])
#|   v3 = slice(x, begin=[0, 2, 1], shape=[B, 1, 4])
#|   b = reshape(v3, [B, 4])
#|   c = slice(x, begin=[0, 0, 1], shape=[((B) / (2)), T, 3], step=[2, 1, 2])
#|   d = slice(x, begin=[0, 0, 5], shape=[B, T, 1])
#|   v7 = slice(x, begin=[((B) / (2)) - 1, T - 3, 0], shape=[1, 2, 3], step=[1, 1, 2])
#|   f = reshape(v7, [2, 3])
#|   g = slice(x, begin=[7, 0, 4], shape=[B - 7, ((T + 1) / (2)), 2], step=[1, 2, 1])
#|   e = x
#| }
