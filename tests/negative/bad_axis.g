graph g(x: f32[8, 4], s: f32[]) -> (y: f32[8, 4]) {
  # error@+1 bad-axis: axis 2 is out of range for rank 2
  a = sum(x, axis=2)
  # error@+1 bad-axis: axis -3 is out of range for rank 2
  b = softmax(x, axis=-3)
  # error@+1 bad-axis: axis 1 is given twice
  c = max(x, axis=[1, -1])
  # error@+1 bad-axis: `perm` must list the 2 axes of (8, 4), not a list of 3
  d = transpose(x, perm=[0, 1, 2])
  # error@+1 bad-axis: axis 0 is given twice in `perm`
  e = transpose(x, perm=[0, 0])
  # error@+1 bad-axis: 3 subscripts for a tensor of rank 2
  f = x[0, 0, 0]
  # error@+1 bad-axis: `cumsum` needs `axis=` for a tensor of rank 2
  h = cumsum(x)
  # error@+1 bad-axis: `iota` of rank 2 needs `axis=`
  i = iota([8, 4])
  # error@+1 bad-axis: scalars have no axis to concat along
  j = concat([s, s])
  # error@+1 bad-axis: a scalar has no axis to split
  k = split(s, 2)
  # error@+1 bad-axis: a scalar has no axis to gather
  l = gather(s, iota([2]))
  y = x
}
