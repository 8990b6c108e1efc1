graph g(h: f16[8, 8], x: f32[8, 8], i: i8[8, 8]) -> (y: f32[8, 8]) {
  # error@+1 unsupported-dtype: a product of f16 gives no bf16 (help: It gives f16, or f32 with `out=f32`; cast that to any other.
  a = matmul(h, h, out=bf16)
  # error@+1 unsupported-dtype: a product of f32 gives no f64 (help: It gives f32: cast the operands or the product.
  b = matmul(x, x, out=f64)
  # error@+1 unsupported-dtype: a product of i8 gives no f32 (help: It gives i8, or i32 with `out=i32`; cast that to any other.
  c = matmul(i, i, out=f32)
  # error@+1 bad-argument: `out` must be a dtype, not a string
  d = matmul(h, h, out="f32")
  y = matmul(h, h, out=f32)
}
