dim N in 0..9

graph g(x: f32[N, 4], i: i32[N], r: f32[N, 4], t: f32[2, 2, 2, 2, 2, 2, 2, 2], j: i32[2, 2, 2, 2, 2, 2, 2, 2]) -> (y: f32[N, 4]) {
  # error@+1 shape-mismatch: `sorted_segment_sum` takes `x` and `ids` of one shape, not (N, 4) and (N,) (help: Reshape and expand `ids`: it has a number for each element of `x`.
  a = sorted_segment_sum(x, i, 3)
  # error@+1 dtype-mismatch: `ids` of `sorted_segment_max` is f32, not i32 or i64 (help: Write cast(ids, i32).
  b = sorted_segment_max(x, r, 3)
  # error@+1 bad-argument: `n` must be a number of segments, 0 or more, not the integer `-1`
  c = sorted_segment_min(i, i, -1)
  # error@+1 bad-axis: axis 1 is out of range for rank 1
  d = sorted_segment_prod(i, i, 3, axis=1)
  wide = t.shape + [1] * 8
  # error@+1 limit: `sorted_segment_sum` takes a rank of at most 15 (help: Reshape the axes before `axis`, or those behind it, to one.
  e = sorted_segment_sum(reshape(t, wide), reshape(j, wide), 3)
  y = x
}
graph h(x: f32[4], i: i32[2], s: f32[2]) -> (y: f32[4]) {
  # error@+1 bad-argument: `scatter_reduce`: `reduce` is a string: sum, prod, mean, amax or amin, in quotes
  z = scatter_reduce(x, 0, i, s, "max")
  # error@+1 bad-argument: `scatter_reduce`: `reduce` is a string: sum, prod, mean, amax or amin, in quotes
  a = scatter_reduce(x, 0, i, s, reduce=max)
  # error@+1 bad-argument: `index` reaches past the end of `src`, or has another rank
  y = scatter(x, 0, tensor([1, 0, 2]), s)
}
