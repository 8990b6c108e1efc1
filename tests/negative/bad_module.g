# Names of the params of modules.
dim B in 1..8
def linear(x, n) {
  param weight: f32[dim(x, -1), n]
  return x @ weight
}
def cast_linear(x, n) {
  param weight: f16[dim(x, -1), n]
  return cast(x, f16) @ weight
}
def row(x, k) {
  # error@+1 bad-argument: `{k}` stands for an integer or a string, not
  param w: f32[8] = "rows.{k}"
  return x + w
}
def open(x) {
  # error@+1 bad-argument: `{` must be followed by the name of a number and `}`
  param w: f32[8] = "rows.{8"
  return x + w
}
def plain(x) = x + x
def typed(x, T) {
  # error@+1 unknown-dtype: unknown dtype `T`
  param w: T[8]
  return x + w
}
graph g(x: f32[B, 8]) -> (y: f32[B, 8]) {
  param w: f32[8, 9] = "tied.weight"
  a = linear(x, 8) as "a"
  # error@-26 shape-mismatch: param "a.weight" is f32[8, 9] here and f32[8, 8] before
  b = linear(x, 9) as "a"
  # error@-28 shape-mismatch: param "tied.weight" is f32[8, 8] here and f32[8, 9] before (note: the first is here
  c = linear(x, 8) as "tied"
  # error@-26 dtype-mismatch: param "a.weight" is f16[8, 8] here and f32[8, 8] before
  d = cast_linear(x, 8) as "a"
  e = row(x, 1.5) as "e"
  f = open(x) as "f"
  # error@+1 bad-argument: `plain` has no params to name
  h = plain(x) as "h"
  # error@+1 bad-argument: `relu` has no params to name
  i = relu(x) as "i"
  # error@+1 bad-argument: `softmax` has no params to name
  j = softmax(x) as "j"
  # error@+1 unknown-op: unknown op `no_such`
  k = no_such(x) as "k"
  # error@+1 unknown-name: unknown name `n`
  l = linear(x, 8) as "l.{n}"
  m = typed(x, 8) as "m"
  # error@+1 syntax: unexpected `as`
  z = x as "z"
  y = a
}
def long(x) {
  # error@+1 limit: key of a param of more than 1024 bytes
  param w: f32[8] = "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll"
  return x * w
}
graph h(x: f32[B, 8]) -> (y: f32[B, 8]) {
  y = long(x) as "k"
}
