# Losses, as means over all elements

# The mean of (x - target)^2.
def mse_loss(x, target) {
  d = cast(x, compute(x)) - cast(target, compute(x))
  return cast(mean(d * d), dtype(x))
}

# The mean of |x - target|.
def l1_loss(x, target) = cast(mean(abs(cast(x, compute(x)) - cast(target, compute(x)))), dtype(x))

# Half the square of the difference where it is below `delta`, else linear.
def huber_loss(x, target, delta=1.0) {
  a = abs(cast(x, compute(x)) - cast(target, compute(x)))
  return cast(mean(where(a < delta, 0.5 * a * a, delta * (a - 0.5 * delta))), dtype(x))
}

# Minus the mean of `x`, log-probabilities [N, C], at the classes `target`, i32[N].
def nll_loss(x, target) {
  z = cast(x, compute(x))
  picked = where(one_hot(target, dim(x, 1), bool), z, const(0, compute(x)))
  return cast(-mean(sum(picked, axis=1)), dtype(x))
}

# `nll_loss(log_softmax(x), target)`: `x` is [N, C] before softmax.
def cross_entropy(x, target) {
  z = cast(x, compute(x))
  return cast(nll_loss(log_softmax(z, axis=1), target), dtype(x))
}

# The mean of target * (log(target) - x), of log-probabilities `x`; 0 where the target is 0.
def kl_div(x, target) {
  t = cast(target, compute(x))
  part = where(t > 0, t * (log(t) - cast(x, compute(x))), 0.0 * t)
  return cast(mean(part), dtype(x))
}

# The mean of x where the target is 1, and of max(0, margin - x) where it is -1.
def hinge_embedding_loss(x, target, margin=1.0) {
  z = cast(x, compute(x))
  return cast(mean(where(target > 0, z, maximum(margin - z, 0))), dtype(x))
}

# The cosine of the angle between `a` and `b` along `axis`.
def cosine_similarity(a, b, axis=1, eps=1e-8) {
  p = cast(a, compute(a))
  q = cast(b, compute(a))
  size = norm(p, axis=axis) * norm(q, axis=axis)
  return cast(sum(p * q, axis=axis) / maximum(size, eps), dtype(a))
}

# The mean of 1 - cosine where the target is 1, and of max(0, cosine - margin) where it is -1.
def cosine_embedding_loss(a, b, target, margin=0.0) {
  c = cosine_similarity(cast(a, compute(a)), cast(b, compute(a)))
  return cast(mean(where(target > 0, 1 - c, maximum(c - margin, 0))), dtype(a))
}

# The mean of max(0, |a - p| - |a - n| + margin), with Euclidean norms of the last axis.
def triplet_margin_loss(anchor, positive, negative, margin=1.0) {
  c = compute(anchor)
  near = norm(cast(anchor, c) - cast(positive, c) + 1e-6, axis=-1)
  far = norm(cast(anchor, c) - cast(negative, c) + 1e-6, axis=-1)
  return cast(mean(maximum(near - far + margin, 0)), dtype(anchor))
}
