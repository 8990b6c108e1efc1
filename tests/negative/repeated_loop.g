dim B in 1..8
dim N in 0..8
def module(x) {
  # error@+1 bad-argument: `{i}` stands for an integer or a string, not a tensor i32[] (note: in each step i of this loop
  h = loop i in 0:B with h = x { return linear_of(h) as "layer.{i}" }
  return h
}
def linear_of(x) {
  param weight: f32[8]
  return x * weight
}
graph g(x: f32[B, 8], y: f32[8, B], n: i32) -> (z: f32[B, 8]) {
  # error@+1 bad-dim: the number of steps `N - 1` can be negative or beyond 2^62 (help: Narrow the dim's range
  a = loop i in 1:N with h = x { return h + 1.0 }
  # error@+1 shape-mismatch: carried value 1 is f32[B, 8] before a step and f32[8, B] after it (help: Where the number of steps is a dim
  b = loop i in 0:B with h = x { return transpose(h) }
  # error@+1 shape-mismatch: carried value 2 is f32[B, 8] before a step and i32[B, 8] after it
  c, d = loop i in 0:B with h = x, k = x { return h, cast(k, i32) }
  e = loop i in 0:B with h = x {
    h1 = loop i1 in 0:N with h1 = h {
      h2 = loop i2 in 0:N with h2 = h1 {
        h3 = loop i3 in 0:N with h3 = h2 {
          # error@+1 limit: loops whose number of steps is a dim are inside each other more than 4 deep (note: in each step i3 of this loop
          h4 = loop i4 in 0:N with h4 = h3 { return h4 }
          return h4
        }
        return h3
      }
      return h2
    }
    return h1
  }
  # error@+1 misplaced: a loop whose number of steps is a dim is in a block
  fuse must { f = loop i in 0:B with h = x { return h + x } }
  # error@+1 wrong-count: a step returns 1 value of the 2 that the loop carries
  g = loop i in 0:B with h = x, k = x { return h + k }
  # error@+1 misplaced: this loop has no `return`
  h = loop i in 0:B with h = x { e = h + 1.0 }
  # error@+1 bad-argument: a subscript must be an integer or a dim expression, not a tensor f32[] (help: To pick rows
  k = loop i in 0:B with h = x { return h + x[sum(h)] }
  # error@+1 bad-argument: `loop_result` takes two lists
  l = loop_result(x, x, B, 0)
  m = module(x)
  p = loop i in 0:B with h = x {
    # error@+1 bad-argument: `{i}` stands for an integer or a string, not a tensor i32[] (help: A loop over a dim is one step that repeats: stack the params
    param w: f32[8] = "layers.{i}"
    return h + w
  }
  # error@+1 bad-argument: this is no `loop_carry`
  o = loop_result([x], [x], B, 0)
  z = x
}
