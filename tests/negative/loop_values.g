dim B in 1..8
# error@+1 bad-argument: a loop_carry is of no loop_result
graph alone(x: f32[B, 8]) -> (z: f32[B, 8]) {
  z = loop_carry(x) + 1.0
}
