graph g(x: f8e4m3[8, 8], y: f8e5m2[8, 8], h: f32[8, 8]) -> (z: f32[8, 8]) {
  # error@+1 unsupported-dtype: `add` does not take f8e4m3 (help: use cast(x, dtype).
  a = x + x
  # error@+1 unsupported-dtype: `sum` does not take f8e5m2
  b = sum(y, axis=0)
  # error@+1 literal-range: the number 1e+03, taken as f8e4m3, is out of range
  c = where(h > 0, x, 1000.0)
  # error@+1 dtype-mismatch: operands of `matmul` are f8e4m3 and f8e5m2
  d = x @ y
  # error@+1 unsupported-dtype: a product of f8e4m3 gives no bf16
  e = matmul(x, x, out=bf16)
  z = matmul(x, x, out=f32)
}
