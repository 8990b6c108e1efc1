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
