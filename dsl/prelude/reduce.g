# Reductions

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


# Whether any element is not 0.
def any(x, axis=none, keep=false) = max(cast(cast(x, bool), i32), axis=axis, keep=keep) > 0

# Whether no element is 0.
def all(x, axis=none, keep=false) = min(cast(cast(x, bool), i32), axis=axis, keep=keep) > 0

# The number of elements that are not 0, i32.
def count_nonzero(x, axis=none, keep=false) = sum(cast(cast(x, bool), i32), axis=axis, keep=keep)

# The Euclidean norm.
def norm(x, axis=none, keep=false) {
  z = cast(x, compute(x))
  return cast(sqrt(sum(z * z, axis=axis, keep=keep)), dtype(x))
}
