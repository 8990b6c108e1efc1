graph g(x: f32[2, 3, 4], i: i32[2, 3, 4], ids: i32[2]) -> (y: f32[2, 3, 4]) {
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  a = flip(x, 3)
  # error@+1 bad-argument: axis -4 is out of range for rank 3
  b = flip(x, [0, -4])
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  c = roll(x, 1, 3)
  # error@+1 bad-argument: axis 4 is out of range for rank 4
  d = unsqueeze(x, 4)
  # error@+1 bad-argument: axis -5 is out of range for rank 4
  e = unsqueeze(x, -5)
  # error@+1 bad-argument: axis 4 is out of range for rank 4
  h = stack([x, x], 4)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  j = squeeze(x, 3)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  k = flatten(x, 0, 3)
  # error@+1 bad-argument: axis 0, `end_dim`, stands before axis 1, `start_dim`
  l = flatten(x, 1, 0)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  m = median(x, 3)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  n = topk(x, 2, 3)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  o = take_along_dim(x, i, 3)
  # error@+1 bad-argument: axis -4 is out of range for rank 3
  p = scan(add, x, -4)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  q = repeat_interleave(x, 2, 3)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  r = segment_sum(x, ids, 2, 3)
  # error@+1 bad-argument: axis 3 is out of range for rank 3
  s = index_copy(x, 3, ids, x)
  # error@+1 bad-argument: `axis` must be the number of an axis
  t = flip(x, "rows")
  y = x
}
