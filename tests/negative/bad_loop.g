dim B in 1..8
dim L = 3
def module(x) {
  h = loop i in 0:2 with h = x {
    param w: f32[8] = "w.{i}"
    return h * w
  }
  return h
}
graph g(x: f32[B, 8], n: i32) -> (y: f32[B, 8]) {
  # error@+1 bad-argument: the end of a loop must be an integer or a dim expression, not a tensor i32[] (help: No step of a loop depends on data
  a = loop i in 0:n with h = x { return h + 1.0 }
  # error@+1 bad-argument: the step of a loop must be an integer other than 0, not the dim expression `B`
  b = loop i in 0:8:B with h = x { return h + 1.0 }
  # error@+1 bad-argument: the step of a loop must be an integer other than 0, not the integer `0`
  c = loop i in 0:3:0 with h = x { return h + 1.0 }
  # error@+1 misplaced: this loop has no `return`
  d = loop i in 0:3 with h = x { e = h + 1.0 }
  # error@+1 redefinition: `h` is bound already by this loop
  e = loop i in 0:3 with h = x, h = x { return h }
  # error@+1 wrong-count: a step returns 1 value of the 2 that the loop carries
  f = loop i in 0:3 with h = x, k = x { return h + k }
  # error@+1 shape-mismatch: shapes of `add` do not broadcast: (B, 8) and (B, 0) (note: in the step i = 0 of this loop
  k = loop i in 0:5 with h = x { return h + x[:, i:2*i] }
  l = loop i in 0:3 with h = x {
    # error@+1 redefinition: `h` is bound already
    h = h + 1.0
    return h
  }
  m = loop i in 0:3 with h = x {
    # error@+1 misplaced: `kernel` belongs directly in a graph
    kernel k { o = h + 1.0 }
    return h
  }
  o = loop i in 0:3 with h = x {
    return h
    # error@+1 misplaced: statement after `return`
    p = h
  }
  # error@+1 misplaced: `module` has params
  p = module(x)
  # error@+1 wrong-count: 3 names for 2 values
  q, r, s = loop i in 0:3 with h = x { return h, h }
  # error@+1 unknown-name: unknown name `i`
  t = x * i
  # error@+1 limit: expansion of defs and loops passes 1048576 expressions
  u = loop i in 0:100000000 with h = x { return h }
  y = x
}
