# `softmax` is a def of the prelude: it expands to a maximum, a difference, an exponential, a sum
# and a quotient. Two reductions over the same rows and the work between them are one kernel. The
# rows are bf16; inside, everything is f32, and only the result is rounded.
dim B in 1..1048576
dim C in 1..65536

graph softmax(x: bf16[B, C]) -> (p: bf16[B, C]) {
  p = softmax(x, axis=-1)
}
