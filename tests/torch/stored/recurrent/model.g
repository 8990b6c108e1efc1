weights "model.safetensors"

graph model(input: f32[2, 4, 6]) -> (permute_6: f32[2, 4, 8], view_4: f32[1, 2, 8]) {
  param weight_ih_l0: f32[24, 6] = "weight_ih_l0"
  param weight_hh_l0: f32[24, 8] = "weight_hh_l0"
  param bias_ih_l0: f32[24] = "bias_ih_l0"
  param bias_hh_l0: f32[24] = "bias_hh_l0"
  full = expand(const(0, f32), [1, 2, 8])
  slice_1 = full
  squeeze = reshape(slice_1, [2, 8])
  permute = transpose(input, perm=[1, 0, 2])
  permute_1 = transpose(weight_ih_l0, perm=[1, 0])
  matmul = permute @ permute_1
  add = matmul + bias_ih_l0
  unsqueeze = reshape(squeeze, [1, 2, 8])
  slice_2 = slice(add, begin=[0, 0, 0], shape=[1, 2, 24])
  slice_3 = slice(add, begin=[1, 0, 0], shape=[1, 2, 24])
  slice_4 = slice(add, begin=[2, 0, 0], shape=[1, 2, 24])
  slice_5 = slice(add, begin=[3, 0, 0], shape=[1, 2, 24])
  squeeze_1 = reshape(slice_2, [2, 24])
  squeeze_2 = reshape(slice_3, [2, 24])
  squeeze_3 = reshape(slice_4, [2, 24])
  squeeze_4 = reshape(slice_5, [2, 24])
  split_with_sizes_0 = split(squeeze_1, [8, 8, 8], axis=1)[0]
  split_with_sizes_1 = split(squeeze_1, [8, 8, 8], axis=1)[1]
  split_with_sizes_2 = split(squeeze_1, [8, 8, 8], axis=1)[2]
  view = reshape(unsqueeze, [2, 8])
  permute_2 = transpose(weight_hh_l0, perm=[1, 0])
  addmm = view @ permute_2 + bias_hh_l0
  v_unsafe_view = reshape(addmm, [1, 2, 24])
  split_with_sizes_1_0 = split(v_unsafe_view, [8, 8, 8], axis=2)[0]
  split_with_sizes_1_1 = split(v_unsafe_view, [8, 8, 8], axis=2)[1]
  split_with_sizes_1_2 = split(v_unsafe_view, [8, 8, 8], axis=2)[2]
  add_1 = split_with_sizes_1_0 + split_with_sizes_0
  sigmoid = sigmoid(add_1)
  add_2 = split_with_sizes_1_1 + split_with_sizes_1
  sigmoid_1 = sigmoid(add_2)
  mul = split_with_sizes_1_2 * sigmoid
  add_3 = split_with_sizes_2 + mul
  tanh = tanh(add_3)
  sub = unsqueeze - tanh
  mul_1 = sub * sigmoid_1
  add_4 = mul_1 + tanh
  split_with_sizes_2_0 = split(squeeze_2, [8, 8, 8], axis=1)[0]
  split_with_sizes_2_1 = split(squeeze_2, [8, 8, 8], axis=1)[1]
  split_with_sizes_2_2 = split(squeeze_2, [8, 8, 8], axis=1)[2]
  view_1 = reshape(add_4, [2, 8])
  permute_3 = transpose(weight_hh_l0, perm=[1, 0])
  addmm_1 = view_1 @ permute_3 + bias_hh_l0
  v_unsafe_view_1 = reshape(addmm_1, [1, 2, 24])
  split_with_sizes_3_0 = split(v_unsafe_view_1, [8, 8, 8], axis=2)[0]
  split_with_sizes_3_1 = split(v_unsafe_view_1, [8, 8, 8], axis=2)[1]
  split_with_sizes_3_2 = split(v_unsafe_view_1, [8, 8, 8], axis=2)[2]
  add_5 = split_with_sizes_3_0 + split_with_sizes_2_0
  sigmoid_2 = sigmoid(add_5)
  add_6 = split_with_sizes_3_1 + split_with_sizes_2_1
  sigmoid_3 = sigmoid(add_6)
  mul_2 = split_with_sizes_3_2 * sigmoid_2
  add_7 = split_with_sizes_2_2 + mul_2
  tanh_1 = tanh(add_7)
  sub_1 = add_4 - tanh_1
  mul_3 = sub_1 * sigmoid_3
  add_8 = mul_3 + tanh_1
  split_with_sizes_4_0 = split(squeeze_3, [8, 8, 8], axis=1)[0]
  split_with_sizes_4_1 = split(squeeze_3, [8, 8, 8], axis=1)[1]
  split_with_sizes_4_2 = split(squeeze_3, [8, 8, 8], axis=1)[2]
  view_2 = reshape(add_8, [2, 8])
  permute_4 = transpose(weight_hh_l0, perm=[1, 0])
  addmm_2 = view_2 @ permute_4 + bias_hh_l0
  v_unsafe_view_2 = reshape(addmm_2, [1, 2, 24])
  split_with_sizes_5_0 = split(v_unsafe_view_2, [8, 8, 8], axis=2)[0]
  split_with_sizes_5_1 = split(v_unsafe_view_2, [8, 8, 8], axis=2)[1]
  split_with_sizes_5_2 = split(v_unsafe_view_2, [8, 8, 8], axis=2)[2]
  add_9 = split_with_sizes_5_0 + split_with_sizes_4_0
  sigmoid_4 = sigmoid(add_9)
  add_10 = split_with_sizes_5_1 + split_with_sizes_4_1
  sigmoid_5 = sigmoid(add_10)
  mul_4 = split_with_sizes_5_2 * sigmoid_4
  add_11 = split_with_sizes_4_2 + mul_4
  tanh_2 = tanh(add_11)
  sub_2 = add_8 - tanh_2
  mul_5 = sub_2 * sigmoid_5
  add_12 = mul_5 + tanh_2
  split_with_sizes_6_0 = split(squeeze_4, [8, 8, 8], axis=1)[0]
  split_with_sizes_6_1 = split(squeeze_4, [8, 8, 8], axis=1)[1]
  split_with_sizes_6_2 = split(squeeze_4, [8, 8, 8], axis=1)[2]
  view_3 = reshape(add_12, [2, 8])
  permute_5 = transpose(weight_hh_l0, perm=[1, 0])
  addmm_3 = view_3 @ permute_5 + bias_hh_l0
  v_unsafe_view_3 = reshape(addmm_3, [1, 2, 24])
  split_with_sizes_7_0 = split(v_unsafe_view_3, [8, 8, 8], axis=2)[0]
  split_with_sizes_7_1 = split(v_unsafe_view_3, [8, 8, 8], axis=2)[1]
  split_with_sizes_7_2 = split(v_unsafe_view_3, [8, 8, 8], axis=2)[2]
  add_13 = split_with_sizes_7_0 + split_with_sizes_6_0
  sigmoid_6 = sigmoid(add_13)
  add_14 = split_with_sizes_7_1 + split_with_sizes_6_1
  sigmoid_7 = sigmoid(add_14)
  mul_6 = split_with_sizes_7_2 * sigmoid_6
  add_15 = split_with_sizes_6_2 + mul_6
  tanh_3 = tanh(add_15)
  sub_3 = add_12 - tanh_3
  mul_7 = sub_3 * sigmoid_7
  add_16 = mul_7 + tanh_3
  cat = concat([add_4, add_8, add_12, add_16], axis=0)
  squeeze_5 = reshape(add_16, [2, 8])
  permute_6 = transpose(cat, perm=[1, 0, 2])
  cat_1 = concat([squeeze_5], axis=0)
  view_4 = reshape(cat_1, [1, 2, 8])
}
