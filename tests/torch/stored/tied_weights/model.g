weights "model.safetensors"

graph model(ids: i64[2, 7]) -> (matmul: f32[2, 7, 40]) {
  param inner_weight: f32[16, 16] = "inner.weight"
  param inner_bias: f32[16] = "inner.bias"
  param head_weight: f32[40, 16] = "head.weight"
  embedding = gather(head_weight, ids, axis=0)
  view = reshape(embedding, [14, 16])
  permute = transpose(inner_weight, perm=[1, 0])
  addmm = view @ permute + inner_bias
  v_unsafe_view = reshape(addmm, [2, 7, 16])
  tanh = tanh(v_unsafe_view)
  permute_1 = transpose(head_weight, perm=[1, 0])
  matmul = tanh @ permute_1
}
