dim B in 0..8
graph g(x: f32[8, 8], z: f32[8, 8], i: i32[2]) -> (y: f32[8, 8]) {
  # error@+1 bad-argument: `max` reduces one tensor (help: For the elementwise one of two tensors write maximum(a, b).
  a = max(x, z)
  # error@+1 bad-argument: `keep` must be true or false, not the integer `1`
  b = sum(x, axis=1, keep=1)
  # error@+1 bad-argument: `axis` must be the number of an axis, not a string
  c = sum(x, axis="rows")
  # error@+1 bad-argument: `axis` must be the number of an axis, not the dim expression `B`
  d = sum(x, axis=B)
  # error@+1 bad-argument: operand 2 of `add` must be a tensor or a number, not a list of 2
  e = x + [1, 2]
  # error@+1 bad-argument: `shape` must be a list of integers, not the integer `64`
  f = reshape(x, 64)
  # error@+1 bad-argument: `shape` must be a list of integers, but holds the number 8.0
  h = reshape(x, [8.0, 8])
  # error@+1 bad-argument: a subscript must be an integer or a dim expression (help: To pick rows
  j = x[i]
  # error@+1 bad-argument: a step must be an integer other than 0, not the integer `0`
  k = x[::0]
  # error@+1 bad-argument: `low` can be negative: -1 (help: Write a slice
  l = pad(x, low=[-1, 0], high=[0, 0])
  # error@+1 bad-argument: `high` lists 1 numbers for a tensor of rank 2
  m = pad(x, low=[0, 0], high=[0])
  # error@+1 bad-argument: `concat` takes a list of 1 to 1024 tensors
  n = concat(x)
  # error@+1 bad-argument: `dtype` must be a dtype, not the integer `16`
  o = cast(x, 16)
  # error@+1 bad-argument: `gelu` has no such approximation
  p = gelu(x, approximate="sine")
  # error@+1 bad-argument: `rank` asks about a tensor, not the integer `3`
  q = rank(3)
  # error@+1 bad-argument: a list is indexed by a single integer
  r = x.shape[0, 1]
  # error@+1 bad-argument: only tensors and lists can be indexed
  s = B[0]
  # error@+1 bad-argument: `x` must be a tensor, not a string
  t = sum("x")
  # error@+1 bad-argument: more than one `...`
  u = x[..., 0, ...]
  y = z
}
