dim N in 0..9
dim M in 1..9

graph numbers(x: f32[3, 4], i: u8[3, 4], s: i16[3], k: u32[3], b: bool[3], e: f32[3, N], z: f32[1, 2, M, 8]) -> (y: f32[3, 4]) {
  # error@+1 bad-argument: `take_along_dim`: indices must be i32 or i64: write cast(.., i32)
  a = take_along_dim(x, i, axis=1)
  # error@+1 bad-argument: `take_along_dim`: indices must be i32 or i64: write cast(.., i32)
  c = take_along_dim(x, s, axis=none)
  # error@+1 bad-argument: `scatter`: `index` must be i32 or i64: write cast(.., i32)
  d = scatter(x, 1, i, x)
  # error@+1 bad-argument: `scatter_add`: `index` must be i32 or i64: write cast(.., i32)
  f = scatter_add(x, 0, i, x)
  # error@+1 bad-argument: `index_add`: `index` must be i32 or i64: write cast(.., i32)
  g = index_add(x, 0, s, x)
  # error@+1 bad-argument: `index_copy`: `index` must be i32 or i64: write cast(.., i32)
  h = index_copy(x, 0, k, x)
  # error@+1 bad-argument: `index_select`: `index` must be i32 or i64: write cast(.., i32)
  j = index_select(x, 0, b)
  # error@+1 bad-argument: `segment_sum`: `segment_ids` must be i32 or i64: write cast(.., i32)
  l = segment_sum(x, s, 2)
  # error@+1 bad-argument: `median`: `x` may have no element to be the median: begin the ranges of its dims at 1
  m = median(e)
  # error@+1 bad-argument: `median`: `x` may have no element to be the median: begin the ranges of its dims at 1
  n = median(e, axis=none)
  # error@+1 bad-argument: `interpolate`: axis 2 has M elements, known at run time: give `size`, or an integer as `scale_factor`
  o = interpolate(z, scale_factor=1.5)
  y = x
}
