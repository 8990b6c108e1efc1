# The memory-bound workloads of docs/RESULTS.md, at 64 MiB and up: three shapes of each kind.
# `sh bench/memory.sh` runs them beside a device copy.

# maps
graph map_f32(a: f32[67108864], b: f32[67108864], c: f32[67108864], d: f32[67108864]) -> (y: f32[67108864]) {
  y = relu(a * b + c) * d - a
}
graph map_bf16(a: bf16[134217728], b: bf16[134217728], c: bf16[134217728], d: bf16[134217728]) -> (y: bf16[134217728]) {
  y = relu(a * b + c) * d - a
}
graph map_bias(x: bf16[16384, 8192], b: bf16[8192]) -> (y: bf16[16384, 8192]) {
  y = relu(x + b)
}
graph map_mixed(x: f32[8192, 8192], m: bf16[8192, 8192]) -> (y: bf16[8192, 8192]) {
  y = cast(x * 0.5, bf16) + m
}
graph map_gelu_bias(x: bf16[16384, 8192], b: bf16[8192]) -> (y: bf16[16384, 8192]) {
  y = gelu(x + b, approximate="tanh")
}

# rows
graph rows_sum_f32(x: f32[16384, 4096]) -> (y: f32[16384]) {
  y = sum(x, axis=1)
}
graph rows_max_bf16(x: bf16[65536, 1024]) -> (y: bf16[65536]) {
  y = max(x, axis=1)
}
graph rows_softmax(x: bf16[16384, 4096]) -> (y: bf16[16384, 4096]) {
  y = softmax(x * 0.5, axis=1)
}
graph rows_layernorm(x: bf16[16384, 4096], r: bf16[16384, 4096], w: bf16[4096], b: bf16[4096]) -> (h: bf16[16384, 4096], y: bf16[16384, 4096]) {
  h = x + r
  y = layernorm(h, w, b)
}
graph rows_rmsnorm(x: bf16[16384, 8192], w: bf16[8192]) -> (y: bf16[16384, 8192]) {
  y = rmsnorm(x, w)
}
graph rows_long(x: f32[64, 1048576]) -> (y: f32[64]) {
  y = sum(x, axis=1)
}

# columns
graph columns_bf16(x: bf16[8192, 8192]) -> (y: f32[8192]) {
  y = sum(relu(cast(x, f32)), axis=0)
}
graph columns_f32(x: f32[4096, 16384]) -> (y: f32[16384]) {
  y = sum(x, axis=0)
}
graph columns_narrow(x: f32[1048576, 64]) -> (y: f32[64]) {
  y = mean(x, axis=0)
}

# all axes
graph all_f32(x: f32[8192, 8192]) -> (y: f32) {
  y = sum(x)
}
graph all_bf16(x: bf16[134217728]) -> (y: f32) {
  y = sum(cast(x, f32))
}
graph all_max(x: f32[256, 262144]) -> (y: f32) {
  y = max(x)
}
