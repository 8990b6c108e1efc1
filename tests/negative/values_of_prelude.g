graph values(x: f32[2, 4, 6], i: i32[3], t: f32[2, 4, 6], key: u32[2], wide: i64[2], rows: i64[2, 6]) -> (y: f32[2]) {
  # error@+1 bad-argument: `dynamic_slice`: `starts` must be integers
  a = dynamic_slice(x[0], [0.9, 2], [1, 1])
  # error@+1 bad-argument: `dynamic_slice`: `starts` must be integers, not floats
  b = dynamic_slice(x[0], [x[0, 0, 0], 2], [1, 1])
  # error@+1 bad-argument: `starts` of `dynamic_update_slice` are integers, not the number 0.0
  c = dynamic_update_slice(x[0], x[1, :1, :1], [0.0, 1])
  # error@+1 bad-argument: `interpolate`: the rank of `x` must be 4, not 3
  d = interpolate(x, size=12, mode="bicubic")
  # error@+1 bad-argument: `interpolate`: `align_corners` is for linear and cubic modes, not nearest
  e = interpolate(x, 2, align_corners=true)
  # error@+1 bad-argument: `cross_entropy`: `label_smoothing` must be from 0 to 1
  f = cross_entropy(x, rows, label_smoothing=1.5)
  # error@+1 bad-argument: `huber_loss`: `delta` must be a number above 0; give `reduction` by name
  h = huber_loss(x, t, delta=0.0)
  # error@+1 bad-argument: `huber_loss`: `delta` must be a number above 0; give `reduction` by name
  j = huber_loss(x, t, "mean")
  # error@+1 bad-argument: `triplet_margin_loss`: `reduction` is mean, sum or none; give other arguments by name
  k = triplet_margin_loss(x, t, x, 1.0, 2.0)
  # error@+1 bad-argument: `avg_pool1d`: `divisor_override` is 0
  l = avg_pool1d(x, 2, divisor_override=0)
  # error@+1 bad-argument: `histc`: `max` must be greater than `min`
  m = histc(x, 4, 1.0, 0.0)
  # error@+1 bad-argument: `randint`: `low` must be less than `high`
  n = randint(key, [3], 5, 5)
  # error@+1 bad-argument: `index_select`: the rank of `index` must be 0 to 1, not 2
  o = index_select(x, 1, rows)
  # error@+1 bad-argument: `index_add`: `source` has 4 slices, and `index` has 3 numbers
  p = index_add(x, 1, i, x)
  # error@+1 bad-argument: `index_copy`: the rank of `index` must be 1, not 2
  q = index_copy(x, 1, rows, x)
  # error@+1 bad-argument: `repeat`: `repeats` must have a number for each of the 3 axes of `x`; `tile` takes fewer
  r = repeat(x, [1])
  # error@+1 bad-argument: `norm`: `p` is a number: 2 for the Frobenius norm of `axis=none`; there is no nuclear norm
  s = norm(x, p="nuc")
  # error@+1 bad-argument: `rand`: `key` must be a tensor u32[2]; `shape` comes after it
  u = rand(wide, [3])
  # error@+1 bad-argument: `repeat_interleave`: `repeats` must have 4 numbers, one for each slice
  v = repeat_interleave(x, [1, 2], 1)
  y = x[0, :2, 0]
}
