# The memory-bound workloads of docs/RESULTS.md on a CPU; `make bench-cpu` runs them beside triad and
# memcpy.
graph map_f32(a: f32[16777216], b: f32[16777216], c: f32[16777216], d: f32[16777216]) -> (y: f32[16777216]) {
  y = relu(a * b + c) * d - a
}
graph map_scale(a: f32[33554432]) -> (y: f32[33554432]) {
  y = a * 2.0 + 1.0
}
graph map_bias(x: f32[16384, 4096], b: f32[4096]) -> (y: f32[16384, 4096]) {
  y = relu(x + b)
}
graph rows_sum(x: f32[16384, 4096]) -> (y: f32[16384]) {
  y = sum(x, axis=1)
}
graph rows_max(x: f32[65536, 1024]) -> (y: f32[65536]) {
  y = max(x, axis=1)
}
graph rows_sum_bf16(x: bf16[32768, 4096]) -> (y: bf16[32768]) {
  y = sum(x, axis=1)
}
graph rows_softmax(x: f32[16384, 2048]) -> (y: f32[16384, 2048]) {
  y = softmax(x, axis=1)
}
graph rows_layernorm(x: f32[16384, 2048], w: f32[2048], b: f32[2048]) -> (y: f32[16384, 2048]) {
  y = layernorm(x, w, b)
}
graph columns_sum(x: f32[16384, 4096]) -> (y: f32[4096]) {
  y = sum(x, axis=0)
}
graph all_sum(x: f32[67108864]) -> (y: f32) {
  y = sum(x)
}
