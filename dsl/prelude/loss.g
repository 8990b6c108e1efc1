# Losses
#
# Each has a loss for every element, or for every row, and gives their mean, or with `reduction="sum"` their sum, or
# with `reduction="none"` all of them.

# `reduction`, if it is the name of one.
def reduction_word(reduction) {
  is_word = kind(reduction) == "string"
  is_good = reduction == "mean" || reduction == "sum" || reduction == "none" if is_word else false
  return reduction if is_good else error("`reduction` is mean, sum or none; give other arguments by name")
}

# What `reduction` says of losses.
def reduced(losses, reduction) {
  of = reduction_word(reduction)
  return mean(losses) if of == "mean" else sum(losses) if of == "sum" else losses
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
  is_good = false if kind(delta) == "string" else delta > 0
  d = delta if is_good else error("`delta` must be a number above 0; give `reduction` by name")
  a = abs(cast(x, compute(x)) - cast(target, compute(x)))
  return cast(reduced(where(a < d, 0.5 * a * a, d * (a - 0.5 * d)), reduction), dtype(x))
}

# `huber_loss` over `beta`: half the square of the difference over `beta` where it is below `beta`, else linear.
def smooth_l1_loss(x, target, reduction="mean", beta=1.0) {
  a = abs(cast(x, compute(x)) - cast(target, compute(x)))
  return cast(reduced(where(a < beta, 0.5 * a * a / beta, a - 0.5 * beta), reduction), dtype(x))
}

# The axis of the classes: 1, or 0 where there are no rows.
def class_axis(x) = 1 if rank(x) > 1 else 0

# One number for each class, [C], as a tensor that broadcasts against x.
def along_classes(x, weight) {
  n = dim(x, class_axis(x))
  w = weight if is_same_shape(weight.shape, [n]) else error("`weight` must have one number for each class")
  return reshape(cast(w, compute(x)), [n] + [1] * (rank(x) - class_axis(x) - 1))
}

# The classes of the rows of x: integers of its shape without the axis of the classes.
def classes_of_rows(x, target) {
  k = class_axis(x)
  is_good = is_same_shape(target.shape, x.shape[:k] + x.shape[k + 1:])
  return as_index(target) if is_good else error("`target` must have the shape of `x` without the axis of the classes")
}

# Where the class of each row is, of the rows whose class is not `ignore_index`, and which rows these are.
def picked_classes(x, target, ignore_index) {
  t = classes_of_rows(x, target)
  k = class_axis(x)
  counts = t != ignore_index
  classes = iota(t.shape[:k] + [dim(x, k)] + t.shape[k:], axis=k, dtype=dtype(t))
  return (classes == unsqueeze(t, k)) & unsqueeze(counts, k), counts
}

# The mean of losses of rows: over their number, or the sum of the weights of their classes.
def mean_of_rows(x, rows, is_picked, counts, weight) {
  c = compute(x)
  ws = cast(counts, c) if weight == none else where(is_picked, along_classes(x, weight), const(0, c))
  n = sum(ws)
  return -sum(rows) / n
}

# Minus `x`, log-probabilities [N, C, ..] or [C], at the classes `target`, integers [N, ..] or one: a loss for each
# row, times its class's number in `weight`, [C]. Rows whose target is `ignore_index` have no part in it. The mean is
# over the sum of the weights.
def nll_loss(x, target, reduction="mean", ignore_index=-100, weight=none) {
  z = cast(x, compute(x))
  is_picked, counts = picked_classes(x, target, ignore_index)
  terms = z if weight == none else z * along_classes(x, weight)
  rows = sum(where(is_picked, terms, const(0, compute(x))), axis=class_axis(x))
  all = mean_of_rows(x, rows, is_picked, counts, weight) if reduction_word(reduction) == "mean" else none
  return cast(-reduced(rows, reduction) if all == none else all, dtype(x))
}

# `nll_loss(log_softmax(x), target)`: `x` is [N, C, ..] or [C] before softmax. A target of the rank of x has a
# probability for each class. `label_smoothing` is the part of the target that is spread over all classes.
def cross_entropy(x, target, reduction="mean", ignore_index=-100, weight=none, label_smoothing=0.0) {
  is_part = 0 <= label_smoothing && label_smoothing <= 1
  scores = x if is_part else error("`label_smoothing` must be from 0 to 1")
  logs = log_softmax(cast(scores, compute(x)), axis=class_axis(x))
  is_plain = rank(target) < rank(x) && label_smoothing == 0
  plain = nll_loss(logs, target, reduction, ignore_index, weight) if is_plain else none
  soft = soft_cross_entropy(logs, target, reduction, weight, label_smoothing) if rank(target) == rank(x) else none
  loss = plain if is_plain else soft
  smooth = smooth_cross_entropy(logs, target, reduction, ignore_index, weight, label_smoothing) if loss == none else loss
  return cast(smooth, dtype(x))
}

# `cross_entropy(x @ transpose(linear_weight) + linear_bias, target)`: `x` is [.., D], `linear_weight` [C, D], and
# `target` has a class for each row. The scores are summed class by class, in an `online` block, and those of the targets
# are computed by themselves.
def linear_cross_entropy(x, linear_weight, target, linear_bias=none, reduction="mean", ignore_index=-100) {
  is_good = is_same_shape(target.shape, x.shape[:rank(x) - 1])
  t = reshape(as_index(target) if is_good else error("`target` must have the shape of `x` without its last axis"), [-1])
  z = reshape(x, [-1, dim(x, -1)])
  online {
    s = matmul(z, transpose(linear_weight), out=compute(x))
    all = logsumexp(s if linear_bias == none else s + cast(linear_bias, compute(x)))
  }
  own = sum(cast(z, compute(x)) * cast(gather(linear_weight, t), compute(x)), axis=1)
  picked = own if linear_bias == none else own + cast(gather(linear_bias, t), compute(x))
  counts = t != ignore_index
  rows = where(counts, all - picked, const(0, compute(x)))
  losses = sum(rows) / sum(cast(counts, compute(x))) if reduction_word(reduction) == "mean" else reduced(reshape(rows, target.shape), reduction)
  return cast(losses, dtype(x))
}

# `cross_entropy` of log-probabilities where the target is probabilities.
def soft_cross_entropy(x, target, reduction, weight, label_smoothing) {
  k = class_axis(x)
  terms = x if weight == none else x * along_classes(x, weight)
  is_good = is_float(target) && is_same_shape(target.shape, x.shape)
  t = target if is_good else error("`target` of the rank of `x` must have a probability for each class, floats")
  own = sum(cast(t, dtype(x)) * terms, axis=k)
  rows = own if label_smoothing == 0 else own * (1 - label_smoothing) + mean(terms, axis=k) * label_smoothing
  return -reduced(rows, reduction)
}

# `cross_entropy` of log-probabilities where the target is classes, smoothed.
def smooth_cross_entropy(x, target, reduction, ignore_index, weight, label_smoothing) {
  k = class_axis(x)
  is_picked, counts = picked_classes(x, target, ignore_index)
  terms = x if weight == none else x * along_classes(x, weight)
  rows = where(counts, mean(terms, axis=k), 0)
  all = mean_of_rows(x, rows, is_picked, counts, weight) if reduction_word(reduction) == "mean" else -reduced(rows, reduction)
  return nll_loss(x, target, reduction, ignore_index, weight) * (1 - label_smoothing) + all * label_smoothing
}

# Minus the logarithm of the probability `x` that the target, 0 to 1, gives to 1; a logarithm is at least -100.
def binary_cross_entropy(x, target, weight=none, reduction="mean") {
  c = compute(x)
  z = cast(x, c)
  t = cast(target, c)
  loss = (t - 1) * maximum(log1p(-z), -100) - t * maximum(log(z), -100)
  return cast(reduced(loss if weight == none else loss * cast(weight, c), reduction), dtype(x))
}

# `binary_cross_entropy(sigmoid(x), target)`. What the target gives to 1 counts `pos_weight` times.
def binary_cross_entropy_with_logits(x, target, weight=none, reduction="mean", pos_weight=none) {
  c = compute(x)
  z = cast(x, c)
  t = cast(target, c)
  rest = maximum(-z, 0) + log1p(exp(-abs(z)))
  loss = (1 - t) * z + (rest if pos_weight == none else rest * ((cast(pos_weight, c) - 1) * t + 1))
  return cast(reduced(loss if weight == none else loss * cast(weight, c), reduction), dtype(x))
}

# The binary cross-entropy of each class, for targets of 0 and 1: [N, C], a loss for each row.
def multilabel_soft_margin_loss(x, target, weight=none, reduction="mean") {
  c = compute(x)
  loss = binary_cross_entropy_with_logits(cast(x, c), cast(target, c), weight, "none")
  return cast(reduced(mean(loss, axis=-1), reduction), dtype(x))
}

# log(1 + e^(-target * x)), for targets of -1 and 1.
def soft_margin_loss(x, target, reduction="mean") {
  return cast(reduced(softplus(-cast(target, compute(x)) * cast(x, compute(x))), reduction), dtype(x))
}

# The mean of max(0, margin - x[target] + x)^p over all classes, without the target's own: [N, C] or [C], a loss for
# each row, times its class's number in `weight`, [C].
def multi_margin_loss(x, target, p=1, margin=1.0, weight=none, reduction="mean") {
  c = compute(x)
  k = class_axis(x)
  z = cast(x, c)
  t = classes_of_rows(x, target)
  is_own = iota(x.shape, axis=k, dtype=dtype(t)) == unsqueeze(t, k)
  own = sum(where(is_own, z, const(0, c)), axis=k, keep=true)
  part = maximum(margin - own + z, 0)
  powers = part if p == 1 else part * part if p == 2 else error("`p` is 1 or 2")
  factor = 1 if weight == none else sum(where(is_own, cast(weight, c), const(0, c)), axis=k, keep=true)
  rows = mean(where(is_own, const(0, c), powers * factor), axis=k)
  return cast(reduced(rows, reduction), dtype(x))
}

# max(0, margin - target * (a - b)), for targets of -1 and 1.
def margin_ranking_loss(a, b, target, margin=0.0, reduction="mean") {
  d = cast(a, compute(a)) - cast(b, compute(a))
  return cast(reduced(maximum(margin - cast(target, compute(a)) * d, 0), reduction), dtype(a))
}

# e^x - target * x, or without `log_input` x - target * log(x + eps). With `full` Stirling's approximation of the
# logarithm of the target's factorial, where the target is above 1.
def poisson_nll_loss(x, target, log_input=true, full=false, eps=1e-8, reduction="mean") {
  z = cast(x, compute(x))
  t = cast(target, compute(x))
  loss = exp(z) - t * z if log_input else z - t * log(z + eps)
  more = where(t > 1, t * log(t) - t + 0.5 * log(6.2831853071795864769 * t), 0.0) if full else none
  return cast(reduced(loss if more == none else loss + more, reduction), dtype(x))
}

# (log(var) + (x - target)^2 / var) / 2, where `var` is at least `eps`; with `full` and log(2 pi) / 2. `var` has the
# shape of x, or has 1 in place of its last axis, or has it not.
def gaussian_nll_loss(x, target, var, full=false, eps=1e-6, reduction="mean") {
  is_of_rows = rank(var) == rank(x) - 1 && rank(var) > 0
  n = dim(var, -1) - dim(x, -2) if is_of_rows else none
  is_column = most(n) == 0 && most(-n) == 0 if is_of_rows else false
  v = maximum(cast(unsqueeze(var, -1) if is_column else var, compute(x)), eps)
  d = cast(x, compute(x)) - cast(target, compute(x))
  loss = 0.5 * (log(v) + d * d / v)
  return cast(reduced(loss + 0.91893853320467274178 if full else loss, reduction), dtype(x))
}

# target * (log(target) - x), of log-probabilities `x`; 0 where the target is 0, and NaN where the target is negative.
# With `log_target` the target is logarithms too. With `reduction="batchmean"` the sum over all axes but the first, and
# their mean.
def kl_div(x, target, reduction="mean", log_target=false) {
  t = cast(target, compute(x))
  d = exp(t) * (t - cast(x, compute(x))) if log_target else none
  part = where(t == 0, 0.0, t * (log(t) - cast(x, compute(x)))) if d == none else d
  rows = sum(reshape(part, [dim(x, 0), -1]), axis=1) if (reduction == "batchmean" if kind(reduction) == "string" else false) else none
  return cast(reduced(part, reduction) if rows == none else mean(rows), dtype(x))
}

# x where the target is 1, and max(0, margin - x) where it is -1.
def hinge_embedding_loss(x, target, margin=1.0, reduction="mean") {
  z = cast(x, compute(x))
  return cast(reduced(where(target > 0, z, maximum(margin - z, 0)), reduction), dtype(x))
}

# The cosine of the angle between `a` and `b` along `axis`. A length below `eps` counts as `eps`.
def cosine_similarity(a, b, axis=1, eps=1e-8) {
  p = cast(a, compute(a))
  q = cast(b, compute(a))
  size = maximum(norm(p, axis=axis), eps) * maximum(norm(q, axis=axis), eps)
  return cast(sum(p * q, axis=axis) / size, dtype(a))
}

# 1 - cosine where the target is 1, and max(0, cosine - margin) where it is -1: [N, C] or [C], a loss for each row. As in
# PyTorch, 1e-12 is added to the square of each length.
def cosine_embedding_loss(a, b, target, margin=0.0, reduction="mean") {
  p = cast(a, compute(a))
  q = cast(b, compute(a))
  k = class_axis(a)
  c = sum(p * q, axis=k) / sqrt((sum(p * p, axis=k) + 1e-12) * (sum(q * q, axis=k) + 1e-12))
  return cast(reduced(where(target > 0, 1 - c, maximum(c - margin, 0)), reduction), dtype(a))
}

# max(0, |a - p| - |a - n| + margin), with `p`-norms of the last axis, of differences plus `eps`: a loss for each row.
# With `swap` the smaller of |a - n| and |p - n| counts.
def triplet_margin_loss(anchor, positive, negative, margin=1.0, reduction="mean", p=2, eps=1e-6, swap=false) {
  c = compute(anchor)
  near = norm(cast(anchor, c) - cast(positive, c) + eps, axis=-1, p=p)
  far = norm(cast(anchor, c) - cast(negative, c) + eps, axis=-1, p=p)
  other = norm(cast(positive, c) - cast(negative, c) + eps, axis=-1, p=p) if swap else far
  least = minimum(far, other) if swap else far
  return cast(reduced(maximum(near - least + margin, 0), reduction), dtype(anchor))
}
