# error@+1 unknown-dtype: unknown dtype `tf32` (help: The dtypes are
graph g(x: tf32[8]) -> (y: f32[8]) {
  y = x + 1
}
