def f(x, k=2) = x * k
graph g(x: f32[8], z: f32[8]) -> (y: f32[8]) {
  # error@+1 wrong-arity: `relu` takes 1 argument, not 2
  a = relu(x, z)
  # error@+1 wrong-arity: `leaky_relu` takes 1 or 2 arguments, not 0
  b = leaky_relu()
  # error@+1 wrong-arity: too many arguments: `f` takes 2 (x, k)
  c = f(x, 1, 2)
  # error@+1 wrong-arity: `reshape` misses its argument `shape`
  d = reshape(x)
  # error@+1 wrong-arity: argument by position after one by keyword
  e = sum(axis=0, x)
  # error@+1 wrong-arity: `x` of `f` is given twice
  h = f(x, x=x)
  y = a + b + c + d + e + h
}
