dim B in 0..8
graph g(x: f32[8, 8], z: f32[B, 8]) -> (y: f32[8, 8]) {
  # error@+1 bad-argument: `padding` must be numbers, "valid", "same" or "causal"
  a = windows(x, size=[2], padding="full")
  # error@+1 bad-argument: `padding="same"` needs strides of 1
  b = windows(x, size=[2], padding="same", stride=2)
  # error@+1 bad-argument: `stride` of `windows` must be a positive integer
  c = windows(x, size=[2], stride=0)
  # error@+1 bad-argument: `dilation` must be known while compiling
  d = windows(x, size=[2], dilation=B)
  # error@+1 bad-argument: `stride` lists 3 numbers for 2 window axes
  e = windows(x, size=[2, 2], stride=[1, 1, 1])
  # error@+1 bad-argument: a window can have no elements: 0
  f = windows(x, size=[0])
  # error@+1 slice-bounds: a window reaches over 9 elements, and axis 1 is not known to have as many: 8
  h = windows(x, size=[5], dilation=2)
  # error@+1 slice-bounds: a window reaches over 2 elements, and axis 0 is not known to have as many: B
  i = windows(z, size=2, axis=0)
  # error@+1 bad-axis: 3 window axes of a tensor of rank 2
  j = windows(x, size=[1, 1, 1])
  # error@+1 bad-argument: padding can be negative: -1 (help: Write a slice
  k = windows(x, size=[2], padding=-1)
  # error@+1 bad-argument: `mode` must be "constant", "reflect", "replicate" or "circular"
  l = pad(x, low=[1, 1], high=[1, 1], mode="mirror")
  # error@+1 bad-argument: a reflect border of 8 needs an axis of 9 elements or more, not 8
  m = pad(x, low=[8, 0], high=[0, 0], mode="reflect")
  # error@+1 bad-argument: a replicate border of 1 needs an axis of 1 elements or more, not B
  n = pad(z, low=[0, 0], high=[1, 0], mode="replicate")
  # error@+1 bad-argument: `interior` of an axis that can be empty: B
  o = pad(z, low=[0, 0], high=[0, 0], interior=[1, 0])
  # error@+1 bad-argument: `interior` must hold integers of 0 or more, not -1
  p = pad(x, low=[0, 0], high=[0, 0], interior=[-1, 0])
  # error@+1 bad-argument: 3 items are wanted, not a list of 2
  q = each([1, 2], 3)
  y = x + sum(p)
}
