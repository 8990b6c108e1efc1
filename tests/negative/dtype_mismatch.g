# error@+1 dtype-mismatch: output `z` is declared f32[8] but is f16[8] (note: `z` is bound here
graph g(x: f32[8], h: f16[8], i: i32[8]) -> (y: f32[8], z: f32[8]) {
  # error@+1 dtype-mismatch: operands of `add` are f32 and f16 (note: `h` is f16[8]
  a = x + h
  # error@+1 dtype-mismatch: operands of `matmul` are f32 and i32
  b = x @ i
  # error@+1 dtype-mismatch: the condition of `where` is f32, not bool (help: Compare it
  c = where(x, x, x)
  # error@+1 dtype-mismatch: dtypes of `concat` differ: f32[8] and f16[8]
  d = concat([x, h])
  # error@+1 dtype-mismatch: operands of `mul` are bool and f32 (help: A bool is no number: write where(condition, x, 0), or cast(condition, f32).
  e = (x > 0) * x
  # error@+1 dtype-mismatch: operands of `add` are f16 and bool (help: A bool is no number: write where(condition, x, 0), or cast(condition, f16).
  f = h + (x > 0)
  # error@+1 dtype-mismatch: operands of `logical_and` are f32 and bool (help: Nothing is promoted silently: write cast(x, bool).
  k = logical_and(x, x > 0)
  y = a + b + c + d + e + f + k
  z = h
}
graph keyed(a: f32[4], b: i32[4]) -> (y: f32[4, 4]) {
  # error@+1 dtype-mismatch: `outer`: operands of `mul` are f32 and i32 (help: Nothing is promoted silently: write cast(
  y = outer(a, b)
}
