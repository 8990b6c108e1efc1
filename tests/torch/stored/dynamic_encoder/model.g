weights "model.safetensors"

dim B in 1..64
dim T in 2..32

graph model(src: f32[B, T, 16]) -> (native_layer_norm_1_0: f32[B, T, 16]) {
  param self_attn_in_proj_weight: f32[48, 16] = "self_attn.in_proj_weight"
  param self_attn_in_proj_bias: f32[48] = "self_attn.in_proj_bias"
  param self_attn_out_proj_weight: f32[16, 16] = "self_attn.out_proj.weight"
  param self_attn_out_proj_bias: f32[16] = "self_attn.out_proj.bias"
  param linear1_weight: f32[32, 16] = "linear1.weight"
  param linear1_bias: f32[32] = "linear1.bias"
  param linear2_weight: f32[16, 32] = "linear2.weight"
  param linear2_bias: f32[16] = "linear2.bias"
  param norm1_weight: f32[16] = "norm1.weight"
  param norm1_bias: f32[16] = "norm1.bias"
  param norm2_weight: f32[16] = "norm2.weight"
  param norm2_bias: f32[16] = "norm2.bias"
  permute = transpose(src, perm=[1, 0, 2])
  permute_1 = transpose(self_attn_in_proj_weight, perm=[1, 0])
  matmul = permute @ permute_1
  add = matmul + self_attn_in_proj_bias
  view = reshape(add, [T, B, 3, 16])
  unsqueeze = reshape(view, [1, T, B, 3, 16])
  permute_2 = transpose(unsqueeze, perm=[3, 1, 2, 0, 4])
  squeeze = reshape(permute_2, [3, T, B, 16])
  clone = squeeze
  select = clone[0]
  select_1 = clone[1]
  select_2 = clone[2]
  view_1 = reshape(select, [T, (2*B), 8])
  permute_3 = transpose(view_1, perm=[1, 0, 2])
  view_2 = reshape(select_1, [T, (2*B), 8])
  permute_4 = transpose(view_2, perm=[1, 0, 2])
  view_3 = reshape(select_2, [T, (2*B), 8])
  permute_5 = transpose(view_3, perm=[1, 0, 2])
  view_4 = reshape(permute_3, [B, 2, T, 8])
  view_5 = reshape(permute_4, [B, 2, T, 8])
  view_6 = reshape(permute_5, [B, 2, T, 8])
  scaled_dot_product_attention = attention(view_4, view_5, view_6)
  permute_6 = transpose(scaled_dot_product_attention, perm=[2, 0, 1, 3])
  view_7 = reshape(permute_6, [(B*T), 16])
  permute_7 = transpose(self_attn_out_proj_weight, perm=[1, 0])
  addmm = view_7 @ permute_7 + self_attn_out_proj_bias
  view_8 = reshape(addmm, [T, B, 16])
  permute_8 = transpose(view_8, perm=[1, 0, 2])
  add_1 = src + permute_8
  native_layer_norm_0 = layernorm(add_1, norm1_weight, norm1_bias, axis=2, eps=1e-05)
  view_9 = reshape(native_layer_norm_0, [(B*T), 16])
  permute_9 = transpose(linear1_weight, perm=[1, 0])
  addmm_1 = view_9 @ permute_9 + linear1_bias
  v_unsafe_view = reshape(addmm_1, [B, T, 32])
  relu = relu(v_unsafe_view)
  view_10 = reshape(relu, [(B*T), 32])
  permute_10 = transpose(linear2_weight, perm=[1, 0])
  addmm_2 = view_10 @ permute_10 + linear2_bias
  v_unsafe_view_1 = reshape(addmm_2, [B, T, 16])
  add_2 = native_layer_norm_0 + v_unsafe_view_1
  native_layer_norm_1_0 = layernorm(add_2, norm2_weight, norm2_bias, axis=2, eps=1e-05)
}
