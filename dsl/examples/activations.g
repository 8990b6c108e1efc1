# Activations of five numbers: docs/ACTIVATIONS.md.
graph activations() -> (cut: f32[5], smooth: f32[5], gate: f32[5], below: f32[5], shares: f32[5], gated: f32[2]) {
  x = tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
  cut = relu(x)
  smooth = gelu(x)
  gate = silu(x)
  below = elu(x, alpha=0.5)
  shares = softmax(x)
  gated = glu(x[1:])
}
