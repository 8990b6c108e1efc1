graph g(a: f32[4, 5], b: f32[5, 6], h: f16[5, 6], c: f32[2, 2, 2, 2, 2]) -> (y: f32[4, 6]) {
  # error@+1 bad-argument: `equation` must be a string such as "ij,jk->ik", not a tensor f32[4, 5]
  d = einsum(a, b)
  # error@+1 wrong-arity: `einsum` misses its argument `a`
  e = einsum("ij->ji")
  # error@+1 wrong-count: the equation has 2 terms for 1 operand
  f = einsum("ij,jk->ik", a)
  # error@+1 shape-mismatch: the equation has 3 letters for (5, 6)
  i = einsum("ij,jkl->ik", a, b)
  # error@+1 shape-mismatch: `j` of the equation is 5 and 6
  j = einsum("ij,kj->ik", a, b)
  # error@+1 shape-mismatch: `i` of the equation is 4 and 5
  k = einsum("ii->i", a)
  # error@+1 bad-argument: `i` stands twice in the result
  l = einsum("ij->ii", a)
  # error@+1 bad-argument: `k` of the result is in no operand
  m = einsum("ij->ik", a)
  # error@+1 bad-argument: the equation has `;jk` where a letter, `...`, `,` or `->` is expected
  n = einsum("ij;jk", a)
  # error@+1 bad-argument: the equation has `.` where a letter of the result is expected
  o = einsum("ij->i.", a)
  # error@+1 bad-argument: a term of the equation has `...` twice
  p = einsum("...i...->i", a)
  # error@+1 limit: the result has more than 16 axes
  q = einsum("abcde,fghij,klmno,pqrst", c, c, c, c)
  # error@+1 limit: a product has more than 15 axes
  r = einsum("abcde,fghij,klmno,pqrst,abcde,fghij,klmno,pqrst->", c, c, c, c, c, c, c, c)
  # error@+1 dtype-mismatch: operands of `matmul` are f32 and f16
  s = einsum("ij,jk->ik", a, h)
  # error@+1 unsupported-dtype: `precision="tf32"` is for operands of f32, not f16
  t = einsum("ij,kj->ik", h, h, precision="tf32")
  y = einsum("ij,jk", a, b, precision="tf32")
}
