# Composite ops, written in the language and visible to every file.
#
# Each casts to the dtype in which its input is computed (f32 for f16 and bf16) and casts its result
# back: one rounding at the end. `axis` is an axis, a list of axes, or none for all of them.

# e^x over its sum along `axis`; the maximum is taken off first, so that no exponential overflows.
def softmax(x, axis=-1) {
  z = cast(x, compute(x))
  e = exp(z - max(z, axis=axis, keep=true))
  return cast(e / sum(e, axis=axis, keep=true), dtype(x))
}

def log_softmax(x, axis=-1) {
  z = cast(x, compute(x))
  d = z - max(z, axis=axis, keep=true)
  return cast(d - log(sum(exp(d), axis=axis, keep=true)), dtype(x))
}

# log(sum(e^x)). An infinite maximum is not taken off: inf - inf would be NaN.
def logsumexp(x, axis=-1, keep=false) {
  z = cast(x, compute(x))
  m = max(z, axis=axis, keep=true)
  top = where(abs(m) == inf, 0.0, m)
  s = log(sum(exp(z - top), axis=axis, keep=keep))
  return cast(s + reshape(top, s.shape), dtype(x))
}

# The population variance, in two passes: the mean first, then the mean square of what is left.
def var(x, axis=none, keep=false) {
  z = cast(x, compute(x))
  d = z - mean(z, axis=axis, keep=true)
  return cast(mean(d * d, axis=axis, keep=keep), dtype(x))
}

# gamma and beta broadcast against x, as [D] does for axis=-1 of [.., D].
def layernorm(x, gamma, beta, axis=-1, eps=1e-5) {
  z = cast(x, compute(x))
  d = z - mean(z, axis=axis, keep=true)
  scale = rsqrt(mean(d * d, axis=axis, keep=true) + eps)
  return cast(d * scale * cast(gamma, compute(x)) + cast(beta, compute(x)), dtype(x))
}

def rmsnorm(x, gamma, axis=-1, eps=1e-5) {
  z = cast(x, compute(x))
  scale = rsqrt(mean(z * z, axis=axis, keep=true) + eps)
  return cast(z * scale * cast(gamma, compute(x)), dtype(x))
}
