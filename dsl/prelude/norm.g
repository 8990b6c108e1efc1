# Normalisation

# z times gamma, if it is given.
def scaled(z, gamma) = z if gamma == none else z * cast(gamma, dtype(z))

# z plus beta, if it is given.
def shifted(z, beta) = z if beta == none else z + cast(beta, dtype(z))

# Zero mean and variance 1 along `axis`. `gamma` and `beta` broadcast against `x`, as [D] does for axis=-1 of [.., D].
def layernorm(x, gamma=none, beta=none, axis=-1, eps=1e-5) {
  z = cast(x, compute(x))
  d = z - mean(z, axis=axis, keep=true)
  scale = rsqrt(mean(d * d, axis=axis, keep=true) + eps)
  return cast(shifted(scaled(d * scale, gamma), beta), dtype(x))
}

# Mean square 1 along `axis`.
def rmsnorm(x, gamma=none, axis=-1, eps=1e-5) {
  z = cast(x, compute(x))
  scale = rsqrt(mean(z * z, axis=axis, keep=true) + eps)
  return cast(scaled(z * scale, gamma), dtype(x))
}

# Statistics of training or inference, of channels on axis 1: `mean`, `variance`, `gamma` and `beta` are [C].
def batchnorm(x, mean, variance, gamma=none, beta=none, eps=1e-5) {
  along = [dim(x, 1)] + [1] * (rank(x) - 2)
  c = compute(x)
  v = of_channels(variance, x, "variance")
  g = gamma if gamma == none else of_channels(gamma, x, "gamma")
  scale = rsqrt(cast(v, c) + eps) if gamma == none else cast(g, c) * rsqrt(cast(v, c) + eps)
  d = cast(x, c) - reshape(cast(of_channels(mean, x, "mean"), c), along)
  return cast(shifted(d * reshape(scale, along), along_channels(beta, x, "beta")), dtype(x))
}

# `v`, which has one number for each channel of x, axis 1. Another shape is an error.
def of_channels(v, x, name) {
  n = dim(x, 1)
  is_good = is_same_shape(v.shape, [n])
  return v if is_good else error("`{name}` must have the shape [{n}], one number for each channel of `x`")
}

# A number for each channel of x, axis 1, if there are any.
def along_channels(v, x, name) = v if v == none else reshape(cast(of_channels(v, x, name), compute(x)), [dim(x, 1)] + [1] * (rank(x) - 2))

# Zero mean and variance 1 in `groups` groups of the channels on axis 1; `gamma` and `beta` are [C].
def groupnorm(x, groups, gamma=none, beta=none, eps=1e-5) {
  n = dim(x, 1)
  is_good = most(n % groups) == 0
  image = x if is_good else error("`x` has {n} channels, which is no multiple of {groups} `groups`")
  z = reshape(cast(image, compute(x)), [dim(x, 0), groups, -1])
  d = z - mean(z, axis=-1, keep=true)
  unit = reshape(d * rsqrt(mean(d * d, axis=-1, keep=true) + eps), x.shape)
  return cast(shifted(scaled(unit, along_channels(gamma, x, "gamma")), along_channels(beta, x, "beta")), dtype(x))
}

# Zero mean and variance 1 of each channel by itself; `gamma` and `beta` are [C].
def instancenorm(x, gamma=none, beta=none, eps=1e-5) = groupnorm(of_rank(x, 3, 8), dim(x, 1), gamma, beta, eps=eps)
