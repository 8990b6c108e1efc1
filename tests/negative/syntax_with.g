graph g(x: f32[4, 6]) -> (y: f32[4, 6]) {
  # error@+1 syntax: unexpected `(`: carried values stand behind `with`, as in `loop i in 0:8 with h = x`
  y = loop i in 0:3 (h = x) { return h }
# error@+1 syntax: unexpected `}`
}
