graph g(x: f32[3, 4], i: i64[3, 1], z: f32[2, 4, 8, 8], row: f32[3], key: u32[2]) -> (y: f32[3, 4]) {
  # error@+1 bad-argument: `target` of the rank of `x` must have a probability for each class, floats
  a = cross_entropy(x, i)
  # error@+1 bad-argument: indices must be integers, not floats
  b = cross_entropy(x, row)
  # error@+1 bad-argument: `target` must have the shape of `x` without the axis of the classes
  c = nll_loss(x, i)
  # error@+1 bad-argument: `target` must have the shape of `x` without the axis of the classes
  d = multi_margin_loss(x, i[:1, 0])
  # error@+1 bad-argument: `weight` must have one number for each class
  e = nll_loss(x, i[:, 0], weight=row[:1])
  # error@+1 bad-argument: indices must be integers, not floats
  h = one_hot(row, 3)
  # error@+1 bad-argument: all axes but the last must have equal extents
  j = searchsorted(x[:2], x)
  # error@+1 bad-argument: `indices` and `x` must broadcast in all axes but axis 1
  k = take_along_dim(x, i[:2])
  # error@+1 bad-argument: indices must be integers, not floats
  l = take_along_dim(x, x)
  # error@+1 bad-argument: the rank of `x` must be 4, not 5
  m = grid_sample(unsqueeze(z, 0), z[:, :, :, :2])
  # error@+1 bad-argument: `grid` must have the shape [B, P, Q, 2] for `x` of [B, C, H, W]
  n = grid_sample(z, z[:, :, :, :3])
  # error@+1 bad-argument: the rank of `x` must be 3 to 4, not 2
  o = adaptive_avg_pool2d(x, 2)
  # error@+1 bad-argument: the rank of `x` must be 3 to 8, not 2
  p = instancenorm(x, row[0], row[0])
  # error@+1 bad-argument: `output_padding` must be less than `stride` or `dilation`
  q = conv_transpose2d(z, reshape(z[0, :, :3, :3], [4, 1, 3, 3]), stride=2, output_padding=3)
  # error@+1 bad-argument: `padding` must be at most half of the window
  r = max_pool2d(z, 2, padding=2)
  # error@+1 bad-argument: `p` is a probability, 0 to 1
  s = dropout(x, 1.5, key)
  # error@+1 bad-argument: the rank of `x` must be 3, not 4
  t = interpolate(z, 2, mode="linear")
  # error@+1 bad-argument: give either `size` or `scale_factor`
  u = interpolate(z, 2, size=[4, 4])
  # error@+1 bad-argument: give either `size` or `scale_factor`
  v = interpolate(z)
  # error@+1 bad-argument: the rank of `x` must be 3 to 4, not 6
  w = conv2d(unsqueeze(unsqueeze(z, 0), 0), z[:, :, :3, :3])
  y = x
}
