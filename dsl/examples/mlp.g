# A transformer's feed-forward layer: two matrix products are two kernels. The bias and gelu run in
# the first one's registers, the bias and the residual in the second's. No weights file is named:
# give the params by --input or frt_program_set_param, or let `bench` and `verify` draw them.
dim B in 1..65536
dim D = 1024

graph mlp(x: bf16[B, D]) -> (y: bf16[B, D]) {
  param w1: bf16[D, 4*D] = "fc1.weight"
  param b1: bf16[4*D]    = "fc1.bias"
  param w2: bf16[4*D, D] = "fc2.weight"
  param b2: bf16[D]      = "fc2.bias"
  y = x + gelu(x @ w1 + b1) @ w2 + b2
}
