dim C in 1..64
graph norms(x: f32[2, 4, 3], m: f32[2, 2], c: f32[4], z: f32[2, C, 4]) -> (y: f32[4]) {
  # error@+1 bad-argument: `groupnorm`: `x` has 4 channels, which is no multiple of 3 `groups`
  a = groupnorm(x, 3)
  # error@+1 bad-argument: `groupnorm`: `x` has 4 channels, which is no multiple of 8 `groups`
  b = groupnorm(pad(x, low=[0, 0, 0], high=[0, 0, 3]), 8)
  # error@+1 bad-argument: `groupnorm`: `x` has C channels, which is no multiple of 2 `groups`
  d = groupnorm(z, 2)
  # error@+1 bad-argument: `groupnorm`: `gamma` must have the shape [4], one number for each channel of `x`
  e = groupnorm(x, 2, m)
  # error@+1 bad-argument: `batchnorm`: `mean` must have the shape [4], one number for each channel of `x`
  f = batchnorm(x, m, c)
  # error@+1 bad-argument: `batchnorm`: `variance` must have the shape [4], one number for each channel of `x`
  h = batchnorm(x, c, m)
  # error@+1 bad-argument: `batchnorm`: `beta` must have the shape [4], one number for each channel of `x`
  i = batchnorm(x, c, c, c, m)
  # error@+1 bad-argument: `batchnorm`: `gamma` must have the shape [4], one number for each channel of `x`
  j = batchnorm(x, c, c, m)
  # error@+1 bad-argument: `bmm`: the rank of `a` must be 3 to 8, not 2
  k = bmm(m, x[:, :2])
  y = c
}
