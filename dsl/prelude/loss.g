# Losses
#
# Each has a loss for every element, or for every row, and gives their mean, or with `reduction="sum"` their sum, or
# with `reduction="none"` all of them.

# What `reduction` says of losses.
def reduced(losses, reduction) {
  is_good = reduction == "mean" || reduction == "sum" || reduction == "none"
  kind = reduction if is_good else error("`reduction` is mean, sum or none")
  return mean(losses) if kind == "mean" else sum(losses) if kind == "sum" else losses
}

# (x - target)^2.
def mse_loss(x, target, reduction="mean") {
  d = cast(x, compute(x)) - cast(target, compute(x))
  return cast(reduced(d * d, reduction), dtype(x))
}

# |x - target|.
def l1_loss(x, target, reduction="mean") {
  return cast(reduced(abs(cast(x, compute(x)) - cast(target, compute(x))), reduction), dtype(x))
}

# Half the square of the difference where it is below `delta`, else linear.
def huber_loss(x, target, delta=1.0, reduction="mean") {
  a = abs(cast(x, compute(x)) - cast(target, compute(x)))
  return cast(reduced(where(a < delta, 0.5 * a * a, delta * (a - 0.5 * delta)), reduction), dtype(x))
}

# Minus `x`, log-probabilities [N, C], at the classes `target`, i32[N]: a loss for each row. Rows whose target is
# `ignore_index` have no part in it.
def nll_loss(x, target, reduction="mean", ignore_index=-100) {
  z = cast(x, compute(x))
  counts = target != ignore_index
  is_picked = one_hot(target, dim(x, 1), bool) & unsqueeze(counts, 1)
  rows = sum(where(is_picked, z, const(0, compute(x))), axis=1)
  n = sum(cast(counts, compute(x))) if reduction == "mean" else none
  return cast(-reduced(rows, reduction) if n == none else -sum(rows) / n, dtype(x))
}

# `nll_loss(log_softmax(x), target)`: `x` is [N, C] before softmax.
def cross_entropy(x, target, reduction="mean", ignore_index=-100) {
  z = cast(x, compute(x))
  return cast(nll_loss(log_softmax(z, axis=1), target, reduction, ignore_index), dtype(x))
}

# target * (log(target) - x), of log-probabilities `x`; 0 where the target is 0. With `reduction="batchmean"` the
# sum over all axes but the first, and their mean.
def kl_div(x, target, reduction="mean") {
  t = cast(target, compute(x))
  part = where(t > 0, t * (log(t) - cast(x, compute(x))), 0.0 * t)
  rows = sum(reshape(part, [dim(x, 0), -1]), axis=1) if reduction == "batchmean" else none
  return cast(reduced(part, reduction) if rows == none else mean(rows), dtype(x))
}

# x where the target is 1, and max(0, margin - x) where it is -1.
def hinge_embedding_loss(x, target, margin=1.0, reduction="mean") {
  z = cast(x, compute(x))
  return cast(reduced(where(target > 0, z, maximum(margin - z, 0)), reduction), dtype(x))
}

# The cosine of the angle between `a` and `b` along `axis`.
def cosine_similarity(a, b, axis=1, eps=1e-8) {
  p = cast(a, compute(a))
  q = cast(b, compute(a))
  size = norm(p, axis=axis) * norm(q, axis=axis)
  return cast(sum(p * q, axis=axis) / maximum(size, eps), dtype(a))
}

# 1 - cosine where the target is 1, and max(0, cosine - margin) where it is -1: a loss for each row.
def cosine_embedding_loss(a, b, target, margin=0.0, reduction="mean") {
  c = cosine_similarity(cast(a, compute(a)), cast(b, compute(a)))
  return cast(reduced(where(target > 0, 1 - c, maximum(c - margin, 0)), reduction), dtype(a))
}

# max(0, |a - p| - |a - n| + margin), with Euclidean norms of the last axis: a loss for each row.
def triplet_margin_loss(anchor, positive, negative, margin=1.0, reduction="mean") {
  c = compute(anchor)
  near = norm(cast(anchor, c) - cast(positive, c) + 1e-6, axis=-1)
  far = norm(cast(anchor, c) - cast(negative, c) + 1e-6, axis=-1)
  return cast(reduced(maximum(near - far + margin, 0), reduction), dtype(anchor))
}
