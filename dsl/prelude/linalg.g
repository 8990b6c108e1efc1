# Products of matrices

# `a @ b` of stacks of matrices.
def bmm(a, b) = a @ b

# `beta * x + alpha * (a @ b)`.
def addmm(x, a, b, beta=1.0, alpha=1.0) = beta * x + alpha * (a @ b)

# Each element of `a` times each of `b`.
def outer(a, b) = reshape(a, [dim(a, 0), 1]) * b

# `x @ transpose(weight) + bias`, with the weights [out, in].
def linear(x, weight, bias) = x @ transpose(weight) + bias
