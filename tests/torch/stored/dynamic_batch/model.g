weights "model.safetensors"

dim B in 1..64

graph model(input: f32[B, 8]) -> (addmm_1: f32[B, 4]) {
  param v0_weight: f32[16, 8] = "0.weight"
  param v0_bias: f32[16] = "0.bias"
  param v2_weight: f32[4, 16] = "2.weight"
  param v2_bias: f32[4] = "2.bias"
  permute = transpose(v0_weight, perm=[1, 0])
  addmm = input @ permute + v0_bias
  gelu = gelu(addmm)
  permute_1 = transpose(v2_weight, perm=[1, 0])
  addmm_1 = gelu @ permute_1 + v2_bias
}
