def f(x) {
  param w: f32[8] = "w"
  return x
}
# error@+1 misplaced: def `nothing` has no `return`
def nothing(x) { a = x }
def more(x) {
  return x
  # error@+1 misplaced: statement after `return`
  a = x
}
graph g(x: f32[8]) -> (y: f32[8]) {
  # error@+1 misplaced: `f` has params, and its call does not name them (help: Write `f(..) as "name"`
  y = f(x) + nothing(x) + more(x)
  # error@+1 misplaced: `return` belongs in a def (help: A graph's outputs
  return y
  kernel outer {
    # error@+1 misplaced: `kernel` belongs directly in a graph
    kernel inner { z = y }
  }
}
