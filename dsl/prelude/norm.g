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
