dim T in 2..64
graph parts(x: f32[T, 8], k: i32[], l: i32[], w: f32[2, 2, 2, 2, 2, 2, 8, 8], a: i8[4, 4], b: u8[4, 4]) -> (y: f32[T, 8]) {
  # error@+1 bad-argument: how long this part is must be known while compiling (help: Write its end as its begin and a number: x[t:t + 2].
  c = x[k:l]
  # error@+1 bad-argument: how long this part is must be known while compiling
  d = x[k:9]
  # error@+1 bad-argument: how long this part is must be known while compiling
  e = x[k + 2:k]
  v = windows(windows(windows(w, size=[2, 2]), size=[1, 1]), size=[1, 1])
  # error@+1 limit: rank 18, but at most 16 is supported (help: Join axes along which no window slides by reshape, and part them behind the reduction.
  f = max(windows(windows(v, size=[1, 1]), size=[1, 1]), axis=[-2, -1])
  # error@+1 dtype-mismatch: operands of `matmul` are i8 and u8 (help: Write matmul(a, b, out=i32): its products are exact.
  h = matmul(a, b)
  y = x
}
