# Activations and attention's parts

# e^x over its sum along `axis`; the maximum is taken off first, so that no exponential overflows.
def softmax(x, axis=-1) {
  z = cast(x, compute(x))
  e = exp(z - max(z, axis=axis, keep=true))
  return cast(e / sum(e, axis=axis, keep=true), dtype(x))
}

# log(softmax(x)), without the quotient.
def log_softmax(x, axis=-1) {
  z = cast(x, compute(x))
  d = z - max(z, axis=axis, keep=true)
  return cast(d - log(sum(exp(d), axis=axis, keep=true)), dtype(x))
}

# `clamp` with one of its bounds, or with names.
def clamp_form(x, min=none, max=none) {
  both = clamp(x, min, max) if min != none && max != none else none
  low = maximum(x, min) if both == none && min != none else both
  is_good = min != none || max != none
  high = max if is_good else error("`clamp` needs `min`, `max` or both")
  return minimum(x, high) if low == none else low
}

# `leaky_relu` with names.
def leaky_relu_form(x, negative_slope=0.01) = leaky_relu(x, negative_slope)

# log(1 + e^(beta * x)) / beta, and `x` where `beta * x` is above the threshold.
def softplus_form(x, beta=1.0, threshold=20.0) {
  z = cast(x, compute(x))
  s = beta * z
  return cast(where(s > threshold, z, softplus(s) / beta), dtype(x))
}

# `x` where positive, else `alpha * (e^x - 1)`.
def elu(x, alpha=1.0) {
  z = cast(x, compute(x))
  return cast(where(z > 0, z, alpha * expm1_below(z, dtype(x) != dtype(z))), dtype(x))
}

# 1.0507 times `elu` with the alpha 1.6733, whose mean and variance settle at 0 and 1.
def selu(x) {
  z = cast(x, compute(x))
  below = 1.7580993408473768599 * expm1_below(z, dtype(x) != dtype(z))
  return cast(where(z > 0, 1.0507009873554804934 * z, below), dtype(x))
}

# `x` where positive, else `alpha * (e^(x/alpha) - 1)`.
def celu(x, alpha=1.0) {
  z = cast(x, compute(x))
  a = error("`alpha` of celu must not be 0") if (false if kind(alpha) == "tensor" else alpha == 0) else alpha
  is_below = false if kind(alpha) == "tensor" else alpha > 0
  below = expm1_below(z / a, dtype(x) != dtype(z)) if is_below else expm1(z / a)
  return cast(where(z > 0, z, a * below), dtype(x))
}

# `x * tanh(softplus(x))`.
def mish(x) {
  z = cast(x, compute(x))
  e = exp(minimum(z, 20))
  n = e * (e + 2)
  return cast(z * (n / (n + 2)), dtype(x))
}

# `x` between `min_val` and `max_val`.
def hardtanh(x, min_val=-1.0, max_val=1.0) = clamp(x, min_val, max_val)

# `x` between 0 and 6.
def relu6(x) = clamp(x, 0, 6)

# x, if it is a tensor of floats.
def floats_of(x) = x if is_float(x) else error("`x` must be floats; use cast(x, f32)")

# `relu6(x + 3) / 6`.
def hardsigmoid(x) {
  z = cast(floats_of(x), compute(x))
  return cast(clamp(z + 3, 0, 6) / 6, dtype(x))
}

# `x * relu6(x + 3) / 6`.
def hardswish(x) {
  z = cast(floats_of(x), compute(x))
  return cast(z * (clamp(z + 3, 0, 6) / 6), dtype(x))
}

# `x / (1 + |x|)`.
def softsign(x) {
  z = cast(floats_of(x), compute(x))
  return cast(z / (1 + abs(z)), dtype(x))
}

# log(sigmoid(x)).
def logsigmoid(x) {
  z = cast(x, compute(x))
  return cast(-(maximum(-z, 0) + log1p(exp(-abs(z)))), dtype(x))
}

# The first half along `axis`, times the sigmoid of the second.
def glu(x, axis=-1) {
  a, b = split(x, 2, axis=axis)
  return cast(cast(a, compute(x)) * sigmoid(cast(b, compute(x))), dtype(x))
}

# Scores of `compute(q)`, masked: a mask of bool hides the keys where it is false, another is added.
def attention_scores(q, k, mask, is_causal, scale) {
  s = einsum("...md,...nd->...mn", q, k, out=compute(q))
  z = s * (1 / sqrt(cast(dim(q, -1), compute(q))) if scale == none else scale)
  seen = z if mask == none else where(mask, z, -inf) if dtype(mask) == bool else z + cast(mask, compute(q))
  mn = [dim(q, -2), dim(k, -2)]
  return where(iota(mn, axis=1) <= iota(mn, axis=0), seen, -inf) if is_causal else seen
}

# The online block of `attention`, without groups.
def attention_heads(q, k, v, mask, is_causal, scale) {
  online {
    y = cast(softmax(attention_scores(q, k, mask, is_causal, scale)), dtype(v)) @ v
  }
  return y
}

# Whether a mask differs from head to head.
def attention_mask_has_heads(mask) = false if mask == none else false if rank(mask) < 3 else most(dim(mask, -3)) != 1

# `attention_groups` of one row of queries: the queries that share a head of keys are the rows of one matrix.
def attention_group_rows(q, k, v, mask, scale) {
  r = rank(q)
  g = dim(k, -3)
  h = dim(q, -3)
  split = reshape(mask, mask.shape[:rank(mask) - 3] + [g, h / g, dim(mask, -1)]) if attention_mask_has_heads(mask) else mask
  y = attention_heads(reshape(q, q.shape[:r - 3] + [g, h / g, dim(q, -1)]), k, v, split, false, scale)
  return reshape(y, q.shape[:r - 1] + [dim(v, -1)])
}

# `attention` of h query heads and g heads of keys and values: h / g queries share a head.
def attention_groups(q, k, v, mask, is_causal, scale) {
  h = dim(q, -3)
  g = dim(k, -3)
  queries = q if most(h - h / g * g) == 0 else error("`q` must have a multiple of the heads, axis -3, of `k`")
  is_row = false if is_causal else most(dim(q, -2)) == 1
  return attention_group_rows(queries, k, v, mask, scale) if is_row else attention_group_heads(queries, k, v, mask, is_causal, scale)
}

# A mask with an axis of g groups, and one of their heads, in place of h heads.
def attention_group_mask(mask, g, h) {
  has_heads = attention_mask_has_heads(mask)
  return mask if mask == none else mask if rank(mask) < 3 else reshape(mask, mask.shape[:rank(mask) - 3] + ([g, h / g] if has_heads else [1, 1]) + mask.shape[rank(mask) - 2:])
}

# The same of queries.
def attention_group_queries(q, g) = reshape(q, q.shape[:rank(q) - 3] + [g, dim(q, -3) / g] + q.shape[rank(q) - 2:])

# The same with any number of rows.
def attention_group_heads(q, k, v, mask, is_causal, scale) {
  g = dim(k, -3)
  split = attention_group_mask(mask, g, dim(q, -3))
  y = attention_heads(attention_group_queries(q, g), unsqueeze(k, -3), unsqueeze(v, -3), split, is_causal, scale)
  return reshape(y, q.shape[:rank(q) - 1] + [dim(v, -1)])
}

# softmax(q k^T scale) v for queries q [.., m, d], keys k [.., n, d] and values v [.., n, c], in one
# pass over the keys, with scores in `compute(q)`. `scale` is 1 / sqrt(d) if none. A `mask` that
# broadcasts to [.., m, n] hides keys (bool, where false) or is added. `is_causal` hides the keys
# after the query's number. With `enable_gqa` q has a multiple of the heads, axis -3, of k and v.
def attention(q, k, v, mask=none, is_causal=false, scale=none, enable_gqa=false) = attention_groups(q, k, v, mask, is_causal, scale) if enable_gqa else attention_heads(q, k, v, mask, is_causal, scale)

# `attention`, and for each query the logarithm of the sum of e^score over the keys that it sees, [.., m] in
# `compute(q)`: -inf where it sees none. The gradient, and attention over parts of the keys, need it.
def attention_lse(q, k, v, mask=none, is_causal=false, scale=none, enable_gqa=false) {
  g = dim(k, -3) if enable_gqa else none
  h = dim(q, -3) if enable_gqa else none
  is_good = most(h - h / g * g) == 0 if enable_gqa else true
  heads = q if is_good else error("`q` must have a multiple of the heads, axis -3, of `k`")
  queries = attention_group_queries(heads, g) if enable_gqa else heads
  keys = unsqueeze(k, -3) if enable_gqa else k
  values = unsqueeze(v, -3) if enable_gqa else v
  split = attention_group_mask(mask, g, h) if enable_gqa else mask
  online {
    s = attention_scores(queries, keys, split, is_causal, scale)
    y = cast(softmax(s), dtype(v)) @ values
    l = logsumexp(s)
  }
  return reshape(y, q.shape[:rank(q) - 1] + [dim(v, -1)]), reshape(l, q.shape[:rank(q) - 1])
}
