dim N in 1..1024

graph shift(x: f32[N]) -> (y: f32[N]) {
  y = x + 2.0
}
