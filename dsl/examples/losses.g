# Losses of two rows of three classes: docs/LOSSES.md.
graph losses() -> (plain: f32[], each: f32[2], smooth: f32[], soft: f32[], sure: f32[]) {
  x = tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 0.5]])
  classes = tensor([0, 2], i64)
  plain = cross_entropy(x, classes)
  each = cross_entropy(x, classes, reduction="none")
  smooth = cross_entropy(x, classes, label_smoothing=0.1, weight=tensor([1.0, 1.0, 2.0]))
  soft = cross_entropy(x, tensor([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]]))
  sure = binary_cross_entropy_with_logits(x, one_hot(classes, 3, f32))
}
