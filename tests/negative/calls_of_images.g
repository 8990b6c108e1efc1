# What a function of the prelude cannot take, in the names of its arguments.
graph images(x: f32[4, 6], z: f32[1, 4, 3, 2], i: i32[4, 6], row: i32[5]) -> (y: f32[4, 6]) {
  # error@+1 bad-argument: `adaptive_avg_pool2d`: `output_size` must be at least 1, not 0
  l = adaptive_avg_pool2d(z, 0)
  # error@+1 bad-argument: `pixel_shuffle`: the rank of `x` must be 3 to 7, not 2
  m = pixel_shuffle(x, 2)
  # error@+1 bad-argument: `pixel_shuffle`: `x` has 4 channels, no multiple of 3 * 3
  n = pixel_shuffle(z, 3)
  # error@+1 bad-argument: `pixel_unshuffle`: `x` has images of 3 x 2, no multiples of 2
  o = pixel_unshuffle(z, 2)
  # error@+1 bad-argument: `dynamic_slice`: `starts` must be scalars, of rank 0, not 2
  p = dynamic_slice(x, [i, 0], [2, 6])
  # error@+1 bad-argument: `dynamic_slice`: `starts` must be a list of 2, one for each axis of `x`
  q = dynamic_slice(x, [0], [2, 6])
  # error@+1 bad-argument: `dynamic_slice`: `sizes` has 9 for axis 0, and `x` has 4 elements there
  r = dynamic_slice(x, [0, 0], [9, 6])
  # error@+1 bad-argument: `topk`: `k` is 99, and axis 1 of `x` has 6 elements
  s, _ = topk(x, 99)
  # error@+1 bad-argument: `searchsorted`: `values` and `sorted_sequence` must have one dtype
  t = searchsorted(x, i)
  y = x
}
