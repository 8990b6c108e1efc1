dim C in 1..64
graph convolutions(x: f32[1, 4, 5, 5], w: f32[2, 3, 3, 3], v: f32[4, 4, 3, 3], b: f32[2], z: f32[1, C, 5, 5]) -> (y: f32[2]) {
  # error@+1 bad-argument: `conv2d`: `x` has 4 channels, and `weight` takes 3 for each of 1 `groups`
  c = conv2d(x, w)
  # error@+1 bad-argument: `conv2d`: `x` has C channels, and `weight` takes 4 for each of 1 `groups`
  d = conv2d(z, v)
  # error@+1 bad-argument: `conv2d_nhwc`: the rank of `weight` must be 4, not 3
  e = conv2d_nhwc(x, w[0])
  # error@+1 bad-argument: `conv2d`: the rank of `x` must be 3 to 4, not 2
  f = conv2d(x[0, 0], w)
  # error@+1 bad-argument: `conv2d`: the rank of `weight` must be 4, not 3
  h = conv2d(x, w[0])
  # error@+1 bad-argument: `conv2d`: `bias` must have the shape [4], one number for each filter
  i = conv2d(x, v, b[:1])
  # error@+1 bad-argument: `conv_transpose2d`: `bias` must have the shape [4], one number for each filter
  j = conv_transpose2d(x, v, b, stride=2)
  # error@+1 bad-argument: `conv2d`: `weight` has 2 filters, which is no multiple of 4 `groups`
  k = conv2d(x, w[:, :1], groups=4)
  # error@+1 bad-argument: `conv_transpose2d`: the rank of `weight` must be 4, not 3
  l = conv_transpose2d(x, w[0])
  # error@+1 bad-argument: `conv_transpose2d`: `x` has 4 channels, and `weight` takes 2
  m = conv_transpose2d(x, w)
  # error@+1 bad-argument: `conv_transpose1d`: `x` has 4 channels, which is no multiple of 3 `groups`
  n = conv_transpose1d(x[:, :, 0], v[:, :, 0], groups=3)
  # error@+1 bad-argument: `conv_transpose2d_nhwc`: the rank of `x` must be 3 to 4, not 2
  o = conv_transpose2d_nhwc(x[0, 0], v)
  # error@+1 bad-argument: `lp_pool1d_nwc`: the rank of `x` must be 2 to 3, not 4
  p = lp_pool1d_nwc(x, 2, 2)
  y = b
}
