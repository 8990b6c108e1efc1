graph g(x: f32[2]) -> (y: f32[2]) {
  # error@+1 shape-mismatch: a list of 1 beside one of 2: the rows of a tensor are equally long
  a = tensor([[1, 2], [3]])
  # error@+1 bad-argument: an item of `tensor` must be a number, not a list of 1
  b = tensor([1, [2]])
  # error@+1 bad-argument: an item of `tensor` must be a list, not the integer `2`
  c = tensor([[1], 2])
  # error@+1 bad-argument: an item of `tensor` must be a number, not a tensor f32[2] (help: Tensors are put side by side by stack([a, b]).
  d = tensor([x, x])
  # error@+1 shape-mismatch: a list of 1 beside one of 0: the rows of a tensor are equally long
  e = tensor([[], [1]])
  # error@+1 literal-range: 1.5
  f = tensor([1, 1.5], i32)
  # error@+1 limit: a tensor of 300 numbers, but at most 256 are possible
  h = tensor([0.0] * 300)
  # error@+1 limit: 17 axes, but at most 16 are supported
  i = tensor([[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]])
  # error@+1 bad-argument: operand 2 of `add` must be a tensor or a number, not a list of 2 (help: Numbers become a tensor by tensor([..]), tensors by stack([..]).
  j = x + [1.0, 2.0]
  # error@+1 bad-argument: `x` must be a tensor, not a list of 2 (help: Numbers become a tensor by tensor([..]), tensors by stack([..]).
  k = sum([1.0, 2.0])
  y = x * tensor([1, 2], f32)
}
