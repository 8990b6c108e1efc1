dim B in 0..64
dim T in 1..100

graph scans(x: f32[B, T, 6], v: i32[T]) -> (a: f32[B, T, 6], b: f32[B, T, 6], c: i32[T], d: f32[B, T, 6]) {
  a = cumsum(x, axis=-1)
  b = cumprod(x, axis=0)
  c = cummax(v)
  d = flip(cummin(flip(x, 1), axis=1), 1)
}
#| dim B in 0..64
#| dim T in 1..100
#|
#| graph scans(x: f32[B, T, 6], v: i32[T]) -> (a: f32[B, T, 6], b: f32[B, T, 6], c: i32[T], d: f32[B, T, 6]) {
#|   a = cumsum(x, axis=2)
#|   b = cumprod(x, axis=0)
#|   c = cummax(v, axis=0)
#|   v5 = slice(x, begin=[0, T - 1, 0], shape=[B, T, 6], step=[1, -1, 1])
#|   v6 = cummin(v5, axis=1)
#|   d = slice(v6, begin=[0, T - 1, 0], shape=[B, T, 6], step=[1, -1, 1])
#| }
