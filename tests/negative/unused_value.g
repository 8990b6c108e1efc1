# warning@+1 unused-value: `b` is never used
graph g(a: f32[8], b: f32[8]) -> (y: f32[8]) {
  # warning@+1 unused-value: `h` is never used
  h = exp(a)
  _scratch = exp(a)
  _, y = split(concat([a, a]), 2)
}
