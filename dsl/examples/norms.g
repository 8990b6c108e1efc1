# Norms of a row of four numbers, and of an image of two channels: docs/NORMS.md.
graph norms() -> (unit: f32[1, 4], root: f32[1, 4], channels: f32[1, 2, 2], trained: f32[1, 2, 2]) {
  x = tensor([[1.0, 2.0, 3.0, 6.0]])
  unit = layernorm(x, ones([4]), zeros([4]))
  root = rmsnorm(x, ones([4]))
  image = reshape(x, [1, 2, 2])
  channels = groupnorm(image, 2, ones([2]), zeros([2]))
  trained = batchnorm(image, mean(image, axis=[0, 2]), var(image, axis=[0, 2]), ones([2]), zeros([2]))
}
