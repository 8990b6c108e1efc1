# Reductions

# log(sum(e^x)). An infinite maximum is not taken off: inf - inf would be NaN.
def logsumexp(x, axis=-1, keep=false) {
  z = cast(x, compute(x))
  m = max(z, axis=axis, keep=true)
  top = where(abs(m) == inf, 0.0, m)
  s = log(sum(exp(z - top), axis=axis, keep=keep))
  return cast(s + reshape(top, s.shape), dtype(x))
}

# The variance: the sum of the squared differences from the mean, divided by n - `correction`, or by 0 where that is
# negative. The mean is computed in a pass of its own. The default is not PyTorch's: `correction=0` is the variance of a
# population, as NumPy has it. Write `correction=1` for PyTorch's `var(x)`, which estimates it from a sample.
def var(x, axis=none, keep=false, correction=0) {
  z = cast(x, compute(x))
  d = z - mean(z, axis=axis, keep=true)
  n = count(z, axis, keep)
  squares = d * d
  v = mean(squares, axis, keep) if correction == 0 else sum(squares, axis, keep) / maximum(n - correction, 0)
  return cast(v, dtype(x))
}

# The number of elements that a reduction takes, in the dtype of x.
def count(x, axis, keep) = sum(expand(const(1, dtype(x)), x.shape), axis=axis, keep=keep)

# The square root of `var`. The default is not PyTorch's: write `correction=1` for PyTorch's `std(x)`.
def std(x, axis=none, keep=false, correction=0) {
  return cast(sqrt(var(cast(x, compute(x)), axis, keep, correction)), dtype(x))
}

# Whether any element is not 0.
def any(x, axis=none, keep=false) = max(cast(cast(x, bool), i32), axis=axis, keep=keep) > 0

# Whether no element is 0.
def all(x, axis=none, keep=false) = min(cast(cast(x, bool), i32), axis=axis, keep=keep) > 0

# The number of elements that are not 0, i32.
def count_nonzero(x, axis=none, keep=false) = sum(cast(cast(x, bool), i32), axis=axis, keep=keep)

# The Euclidean norm, or the `p`-th root of the sum of the `p`-th powers of |x|; with `p=inf` the largest |x|, with
# `p=-inf` the smallest, with `p=0` the number of elements that are not 0.
def norm(x, axis=none, keep=false, p=2) = error("`p` is a number: 2 for the Frobenius norm of `axis=none`; there is no nuclear norm") if kind(p) == "string" else norm_of(x, axis, keep, p)

# `norm` where `p` is a number.
def norm_of(x, axis, keep, p) {
  z = cast(x, compute(x))
  is_plain = p == 1 || p == inf || p == -inf
  powers = z * z if p == 2 else abs(z) if is_plain else cast(z != 0, compute(x)) if p == 0 else pow(abs(z), p)
  most = max(powers, axis=axis, keep=keep) if p == inf else none
  least = min(powers, axis=axis, keep=keep) if p == -inf else none
  s = most if p == inf else least if p == -inf else sum(powers, axis=axis, keep=keep)
  return cast(sqrt(s) if p == 2 else s if is_plain || p == 0 else pow(s, 1.0 / p), dtype(x))
}
