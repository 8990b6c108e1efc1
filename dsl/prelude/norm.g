# Normalisation

# Zero mean and variance 1 along `axis`. `gamma` and `beta` broadcast against `x`, as [D] does for axis=-1 of [.., D].
def layernorm(x, gamma, beta, axis=-1, eps=1e-5) {
  z = cast(x, compute(x))
  d = z - mean(z, axis=axis, keep=true)
  scale = rsqrt(mean(d * d, axis=axis, keep=true) + eps)
  return cast(d * scale * cast(gamma, compute(x)) + cast(beta, compute(x)), dtype(x))
}

# Mean square 1 along `axis`.
def rmsnorm(x, gamma, axis=-1, eps=1e-5) {
  z = cast(x, compute(x))
  scale = rsqrt(mean(z * z, axis=axis, keep=true) + eps)
  return cast(z * scale * cast(gamma, compute(x)), dtype(x))
}

# Statistics of training or inference, of channels on axis 1: `mean`, `variance`, `gamma` and `beta` are [C].
def batchnorm(x, mean, variance, gamma, beta, eps=1e-5) {
  along = [dim(x, 1)] + [1] * (rank(x) - 2)
  c = compute(x)
  scale = cast(gamma, c) * rsqrt(cast(variance, c) + eps)
  d = cast(x, c) - reshape(cast(mean, c), along)
  return cast(d * reshape(scale, along) + reshape(cast(beta, c), along), dtype(x))
}

# Zero mean and variance 1 in `groups` groups of the channels on axis 1; `gamma` and `beta` are [C].
def groupnorm(x, groups, gamma, beta, eps=1e-5) {
  along = [dim(x, 1)] + [1] * (rank(x) - 2)
  c = compute(x)
  z = reshape(cast(x, c), [dim(x, 0), groups, -1])
  d = z - mean(z, axis=-1, keep=true)
  unit = reshape(d * rsqrt(mean(d * d, axis=-1, keep=true) + eps), x.shape)
  return cast(unit * reshape(cast(gamma, c), along) + reshape(cast(beta, c), along), dtype(x))
}

# Zero mean and variance 1 of each channel by itself; `gamma` and `beta` are [C].
def instancenorm(x, gamma, beta, eps=1e-5) = groupnorm(of_rank(x, 3, 8), dim(x, 1), gamma, beta, eps=eps)
