dim T in 1..8
def half(a, b) = (a + b)[:, :1]
def one(a, b) = a[0]
def apart(a, b) = b
def wide(a, b) = cast(a + b, f64)
# error@+1 unknown-op: unknown op `f`
def apply(f, x) = f(x)
graph g(x: f32[T, 8]) -> (y: f32[T, 8]) {
  # error@+1 bad-argument: the function of a scan must give the shapes and dtypes that it takes
  a = scan(half, x)
  # error@+1 bad-argument: the function of a scan must give the shapes and dtypes that it takes
  b = scan(wide, x)
  # error@+1 bad-argument: the function of a scan must give as many tensors as it takes
  c = scan(one, [x, x])
  # error@+1 bad-argument: operand 2 of `add` must be a tensor or a number, not the function `half` (help: `half` is a function: call it with parentheses.
  d = x + half
  # error@+1 bad-argument: the tensors of a scan have one extent along its axis
  j = scan(apart, [x, x[:, 1:]], axis=1)
  e = apply(x, x)
  # error@+1 wrong-arity: `neg` takes
  f = scan(neg, x)
  # error@+1 unknown-op: unknown op `associative_scan` (help: Did you mean `scan`?
  i = associative_scan(add, x)
  # error@+1 bad-argument: the function of a scan is a def or an op, without quotes, as in scan(maximum, x)
  k = scan("add", x)
  # error@+1 bad-argument: the function of a scan is a def or an op
  p = scan(3, x)
  # error@+1 bad-argument: `arange` needs an end, as in arange(8)
  l = arange()
  # error@+1 unknown-op: unknown op `BCELoss` (help: Did you mean `binary_cross_entropy`?
  m = BCELoss(x, x)
  # error@+1 unknown-op: unknown op `Sequential` (help: fusec has no `Sequential`: a module is a def with params
  o = Sequential(x)
  y = x
}
