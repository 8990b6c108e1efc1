weights "model.safetensors"

graph model(x: f32[3, 8]) -> (addmm: f32[3, 6], topk_0: f32[3, 2], topk_1: i64[3, 2], output: f32[3, 6], output_2: f32[3, 8], sum_1: f32) {
  param linear_weight: f32[6, 8] = "linear.weight"
  param linear_bias: f32[6] = "linear.bias"
  permute = transpose(linear_weight, perm=[1, 0])
  addmm = x @ permute + linear_bias
  topk_0 = topk(addmm, 2, axis=1, largest=true)[0]
  topk_1 = cast(topk(addmm, 2, axis=1, largest=true)[1], i64)
  sum_1 = sum(addmm)
  output = addmm
  output_2 = x
}
