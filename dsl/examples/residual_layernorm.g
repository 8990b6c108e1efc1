# A value that is both an output and an input of more work is stored on the way: `h` is written by
# the same kernel that normalises it. Outputs are the names declared after `->`.

dim T in 1..1048576
dim D in 1..16384

graph residual_layernorm(x: bf16[T, D], r: bf16[T, D], gamma: bf16[D], beta: bf16[D]) -> (h: bf16[T, D], y: bf16[T, D]) {
  h = x + r
  y = layernorm(h, gamma, beta, eps=1e-5)
}
