# What a function of the prelude cannot take, in the names of its arguments.
graph calls(x: f32[4, 6], z: f32[1, 4, 3, 2], i: i32[4, 6], row: i32[5]) -> (y: f32[4, 6]) {
  # error@+1 bad-argument: a subscript adds no axis (help: Write unsqueeze(x, 1)
  a = x[:, None]
  # error@+1 bad-argument: a subscript adds no axis
  b = x[none, :]
  # error@+1 bad-argument: `scatter`: `index` must be integers, not floats
  c = scatter(x, 0, x, x)
  # error@+1 bad-argument: `scatter_add`: the rank of `index` must be 2, as of `x`, not 1
  d = scatter_add(x, 0, row, x)
  # error@+1 bad-argument: `index_add`: `index` must be integers, not floats
  e = index_add(x, 0, x[:, 0], x)
  # error@+1 bad-argument: `segment_sum`: `segment_ids` has 5 numbers, and axis 0 of `x` has 4 slices
  f = segment_sum(x, row, 3)
  # error@+1 bad-argument: `conv2d`: `weight` reaches over 5 elements, and `x` with its padding has 3
  h = conv2d(z, ones([2, 4, 5, 5]))
  # error@+1 bad-argument: `conv2d`: `weight` reaches over 5 elements, and `x` with its padding has 4
  j = conv2d(z, ones([2, 4, 1, 3]), padding=[0, 1], dilation=2)
  # error@+1 bad-argument: `max_pool2d`: `kernel_size` reaches over 3 elements, and `x` with its padding has 2
  k = max_pool2d(z, 3)
  y = x
}
