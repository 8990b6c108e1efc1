# Included files have dims and defs, and each counts once.
dim B in 1..8
include "include/layers.g"
include "include/../include/dims.g"
dim G = F + 1

graph includes(x: f32[B, D], include: f32[D]) -> (y: f32[B, G]) {
  y = linear(linear(x + include, F) as "a", G) as "b"
}
#| dim B in 1..8
#|
#| graph includes(x: f32[B, 16], include: f32[16]) -> (y: f32[B, 33]) {
#|   v2 = add(x, include)
#|   param a_weight: f32[16, 32] = "a.weight"
#|   v4 = matmul(v2, a_weight)
#|   param b_weight: f32[32, 33] = "b.weight"
#|   y = matmul(v4, b_weight)
#| }
