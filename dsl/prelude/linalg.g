# Products of matrices

# `a @ b` of stacks of matrices; `out` as in `matmul`.
def bmm(a, b, out=dtype(a)) = matmul(of_rank(a, 3, 8, "a"), of_rank(b, 3, 8, "b"), out=out)

# `beta * x + alpha * matmul(a, b, out=out)`, where `x` has the dtype `out`. With the number 0 as `beta` the elements of
# `x` do not count, be they NaN.
def addmm(x, a, b, beta=1.0, alpha=1.0, out=dtype(a)) {
  is_zero = false if kind(beta) == "tensor" else beta == 0
  return alpha * matmul(a, b, out=out) if is_zero else beta * x + alpha * matmul(a, b, out=out)
}

# Each element of `a` times each of `b`.
def outer(a, b) = reshape(a, [dim(a, 0), 1]) * of_rank(b, 1, 1, "b")

# `matmul(x, transpose(weight), out=out) + bias`, with the weights [to, from] and a bias of the dtype `out`, or none.
def linear(x, weight, bias=none, out=dtype(x)) = biased(matmul(x, transpose(weight), out=out), bias)
