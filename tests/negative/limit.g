def f0(x) { return x + x }
# error@+1 limit: expansion of defs and loops passes 1048576 expressions
def f1(x) { return f0(f0(f0(f0(x)))) }
def f2(x) { return f1(f1(f1(f1(x)))) }
def f3(x) { return f2(f2(f2(f2(x)))) }
def f4(x) { return f3(f3(f3(f3(x)))) }
def f5(x) { return f4(f4(f4(f4(x)))) }
def f6(x) { return f5(f5(f5(f5(x)))) }
def f7(x) { return f6(f6(f6(f6(x)))) }
def f8(x) { return f7(f7(f7(f7(x)))) }
def f9(x) { return f8(f8(f8(f8(x)))) }
# error@+1 limit: rank 9, but an input, param or output has at most 8 axes
graph r(x: f32[1, 1, 1, 1, 1, 1, 1, 1, 1]) -> (y: f32[1]) {
  # error@+1 limit: 17 axes, but at most 16 are supported
  y = reshape(iota([1]), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
}
graph m(x: f32[4, 4]) -> (y: f32[4, 4]) {
  wide = reshape(x, [1] * 14 + [4, 4])
  # error@+1 limit: a matmul of rank 16, but at most 15 is supported
  _ = wide @ wide
  y = x
}
graph g(x: f32[4]) -> (y: f32[4]) {
  # A billion additions: refused, and soon.
  y = f9(f9(f9(f9(f9(f9(x))))))
}
