weights "model.safetensors"

graph model(input: f32[2, 3, 16, 16]) -> (addmm: f32[2, 5]) {
  param v0_weight: f32[8, 3, 3, 3] = "0.weight"
  param v1_weight: f32[8] = "1.weight"
  param v1_bias: f32[8] = "1.bias"
  param v3_weight: f32[8, 1, 3, 3] = "3.weight"
  param v3_bias: f32[8] = "3.bias"
  param v8_weight: f32[5, 8] = "8.weight"
  param v8_bias: f32[5] = "8.bias"
  param v1_running_mean: f32[8] = "1.running_mean"
  param v1_running_var: f32[8] = "1.running_var"
  convolution = conv2d(input, v0_weight, stride=[2, 2], padding=[1, 1])
  v_native_batch_norm_legit_no_training_0 = batchnorm(convolution, v1_running_mean, v1_running_var, v1_weight, v1_bias, eps=1e-05)
  relu = relu(v_native_batch_norm_legit_no_training_0)
  convolution_1 = conv2d(relu, v3_weight, bias=v3_bias, padding=[1, 1], groups=8)
  hardswish = hardswish(convolution_1)
  max_pool2d_with_indices_0 = max_pool2d(hardswish, [2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1])
  adaptive_avg_pool2d = adaptive_avg_pool2d(max_pool2d_with_indices_0, [1, 1])
  view = reshape(adaptive_avg_pool2d, [2, 8])
  permute = transpose(v8_weight, perm=[1, 0])
  addmm = view @ permute + v8_bias
}
