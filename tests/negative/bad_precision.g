graph g(a: f32[8, 8], b: f32[8, 8], h: f16[8, 8], i: i32[8, 8]) -> (y: f32[8, 8]) {
  # error@+1 bad-argument: `precision` must be "full" or "tf32"
  c = matmul(a, b, precision="bf16")
  # error@+1 bad-argument: `precision` must be "full" or "tf32", not the integer `32`
  d = matmul(a, b, precision=32)
  # error@+1 unsupported-dtype: `precision="tf32"` is for operands of f32, not f16
  e = matmul(h, h, precision="tf32")
  # error@+1 unsupported-dtype: `precision="tf32"` is for operands of f32, not i32
  f = matmul(i, i, precision="tf32")
  # error@+1 unknown-argument: `matmul` has no parameter `precise` (help: Its parameters are: a, b, precision, out.
  j = matmul(a, b, precise="tf32")
  y = matmul(a, b, precision="full")
}
