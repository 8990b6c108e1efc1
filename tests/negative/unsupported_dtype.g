graph g(x: f32[8], i: i32[8], b: bool[8, 8]) -> (y: f32[8]) {
  # error@+1 unsupported-dtype: `exp` does not take i32 (help: `exp` takes f64, f32, f16, bf16
  a = exp(i)
  # error@+1 unsupported-dtype: `mean` does not take bool
  c = mean(b)
  # error@+1 unsupported-dtype: `matmul` does not take bool
  d = b @ b
  # error@+1 unsupported-dtype: `logical_and` does not take f32
  e = x && x
  # error@+1 unsupported-dtype: indices of `gather` must be i32 or i64, not f32
  f = gather(x, x)
  # error@+1 unsupported-dtype: indices of `gather` must be i32 or i64, not u8
  k = gather(x, cast(i, u8))
  # error@+1 unsupported-dtype: `iota` gives i32 or i64, not u32
  l = iota([8], dtype=u32)
  # error@+1 unsupported-dtype: `mean` does not take i64
  m = mean(cast(i, i64))
  # error@+1 unsupported-dtype: `bitwise_and` does not take f32
  n = x & x
  # error@+1 unsupported-dtype: `bitwise_left_shift` does not take bool
  o = b << b
  # error@+1 unsupported-dtype: `bitcast` of f32, 4 bytes, to f64, 8 bytes
  p = bitcast(x, f64)
  # The mistake surfaces inside the prelude and is shown at the call.
  # error@+1 unsupported-dtype: `softmax`: `exp` does not take i32 (note: the error is here, in the prelude
  h = softmax(i)
  # A number of the prelude that integers lack says so once.
  # error@+1 unsupported-dtype: `elu` does not take i32 (help: `elu` computes with floats; use cast(x, f32)
  q = elu(i)
  # error@+1 unsupported-dtype: `huber_loss` does not take i32
  r = huber_loss(i, i)
  # error@+1 bad-argument: `x` must be floats; use cast(x, f32)
  s = hardswish(i)
  # error@+1 bad-argument: `alpha` of celu must not be 0
  t = celu(x, 0)
  y = x
}
