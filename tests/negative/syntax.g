# Each broken statement is reported once; the next line is read afresh, and what a broken statement
# would have bound causes no further error.
dim B in 1..64
graph g(x: f32[B]) -> (y: f32[B], z: f32[B]) {
  # error@+1 syntax: unexpected end of line, expected an expression
  a = x +
  # error@+1 syntax: unexpected `)`, expected an expression
  b = relu(x + ) * 2
  # error@+1 syntax: unexpected `(`: a statement binds a name, as in `y = f(x)`, and nothing else happens
  relu(x)
  # error@+1 syntax: unexpected `<`: comparisons do not chain
  e = x < 1 < 2
  # error@+1 syntax: unexpected `,`: a list stands in brackets, as in `[0, 1]`
  c, d = (exp(x), x
  y = a + b
  z = c * d
}
# error@+1 syntax: unexpected `grap`, expected `weights`, `dim`, `include`, `graph` or `def`
grap h(x: f32[B]) -> (y: f32[B]) {
  y = x
}
# error@+1 syntax: unexpected `f32`, expected `:`
graph k(x f32[B]) -> (y: f32[B]) {
  y = relu(x)
}
# error@+1 syntax: expected a name
def = 3
# error@+1 shape-mismatch: output `y` is declared f32[B] but is f32[] (note: `y` is bound here
graph l(x: f32[B]) -> (y: f32[B]) {
  y = sum(x)
}
