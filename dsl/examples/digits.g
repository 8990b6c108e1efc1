# Handwritten digits: 8 x 8 pixels from 0 to 1 in, the probability of each digit out. The weights
# come from digits/train.py, which also makes the held-out images that `make demo` counts.
weights "digits/weights.safetensors"

dim B in 1..65536

graph digits(x: f32[B, 64]) -> (p: f32[B, 10]) {
  param w1: f32[64, 128] = "fc1.weight"
  param b1: f32[128]     = "fc1.bias"
  param w2: f32[128, 10] = "fc2.weight"
  param b2: f32[10]      = "fc2.bias"
  h = relu(x @ w1 + b1)
  p = softmax(h @ w2 + b2)
}
