graph g(x: f32[4, 8], s: f32[8, 8], d: f64[4, 8], v: f32[8, 3], h: f16[8, 3]) -> (a: f32[4, 3], b: f32[8, 3], c: f32[4, 3], e: f32[4, 3], f: f32[4, 3], g: f32[4, 3], i: f16[4, 3], j: f32[4, 3]) {
  # error@+1 online: the `online` block has no softmax whose axis a product contracts (help: Put the softmax and the matmul of its result into the block.
  online {
    a = x @ v
  }
  online {
    p = softmax(s, axis=0)
    # error@+1 online: a softmax goes along another axis than the one that its product contracts (help: Let both go along one axis.
    b = p @ v
  }
  online {
    # error@+1 online: `relu` stands between the softmax and its product (help: Put it before the softmax, or behind the product.
    c = relu(softmax(x)) @ v
    # error@+1 online: the weights of a softmax are not divided by their sum (help: Divide them, or the product, by their sum along the axis.
    e = exp(x - max(x, axis=1, keep=true)) @ v
    w = exp(x - max(x, axis=1, keep=true))
    # error@+1 online: the weights are divided by something else than their sum (help: Divide by the sum of the same weights along the contracted axis.
    f = (w / sum(w * 2, axis=1, keep=true)) @ v
    # error@+1 online: `mul` changes the weights of a softmax before their sum (help: Add the factor's logarithm to the scores.
    j = (w * x / sum(w * x, axis=1, keep=true)) @ v
    # error@+1 online: the product has a precision of its own (help: Leave out `precision`.
    g = matmul(softmax(x), v, precision="tf32")
    # error@+1 online: scores of f64 do not go with values of f16 (help: Cast the values, or the scores to f32.
    i = cast(softmax(d), f16) @ h
  }
}
