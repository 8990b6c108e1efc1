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

# `x` where positive, else `alpha * (e^x - 1)`.
def elu(x, alpha=1.0) {
  z = cast(x, compute(x))
  t = tanh(z * 0.5)
  return cast(where(z > 0, z, alpha * ((t + t) / (1 - t))), dtype(x))
}

# 1.0507 times `elu` with the alpha 1.6733, whose mean and variance settle at 0 and 1.
def selu(x) {
  z = cast(x, compute(x))
  t = tanh(z * 0.5)
  below = 1.7580993408473768599 * ((t + t) / (1 - t))
  return cast(where(z > 0, 1.0507009873554804934 * z, below), dtype(x))
}

# `x` where positive, else `alpha * (e^(x/alpha) - 1)`.
def celu(x, alpha=1.0) {
  z = cast(x, compute(x))
  t = tanh(z / alpha * 0.5)
  return cast(where(z > 0, z, alpha * ((t + t) / (1 - t))), dtype(x))
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

# `relu6(x + 3) / 6`.
def hardsigmoid(x) {
  z = cast(x, compute(x))
  return cast(clamp(z + 3, 0, 6) / 6, dtype(x))
}

# `x * relu6(x + 3) / 6`.
def hardswish(x) {
  z = cast(x, compute(x))
  return cast(z * (clamp(z + 3, 0, 6) / 6), dtype(x))
}

# `x / (1 + |x|)`.
def softsign(x) {
  z = cast(x, compute(x))
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
