# Segments and scatters
#
# Where several elements meet in one place, they are combined in the order in which they stand in
# the source. Numbers of segments and indices that are below 0 or too large are left out.

# Slices of the axis in ascending order of their numbers, i32[n] or i64[n], and these numbers for each
# element: what `sorted_segment_sum` takes.
def sort_segments(x, segment_ids, axis=0) {
  k = axis_of(axis, rank(x))
  own = of_rank(index_numbers(segment_ids, "`segment_ids`"), 1, 1, "segment_ids")
  n = dim(x, k)
  m = dim(own, 0)
  is_good = m == n
  order = argsort(own if is_good else error("`segment_ids` has {m} numbers, and axis {k} of `x` has {n} slices"))
  ids = reshape(gather(own, order), [1] * k + [-1] + [1] * (rank(x) - k - 1))
  return gather(x, order, axis=k), expand(ids, x.shape)
}

# The sums of the slices of the axis that have the same number, for the numbers below `num_segments`.
def segment_sum(x, segment_ids, num_segments, axis=0) {
  values, ids = sort_segments(x, segment_ids, axis)
  return sorted_segment_sum(values, ids, num_segments, axis)
}

# The products of slices of the same number; of none 1.
def segment_prod(x, segment_ids, num_segments, axis=0) {
  values, ids = sort_segments(x, segment_ids, axis)
  return sorted_segment_prod(values, ids, num_segments, axis)
}

# The largest elements of slices of the same number; of none -inf.
def segment_max(x, segment_ids, num_segments, axis=0) {
  values, ids = sort_segments(x, segment_ids, axis)
  return sorted_segment_max(values, ids, num_segments, axis)
}

# The smallest elements of slices of the same number; of none inf.
def segment_min(x, segment_ids, num_segments, axis=0) {
  values, ids = sort_segments(x, segment_ids, axis)
  return sorted_segment_min(values, ids, num_segments, axis)
}

# `src` along the axis in ascending order of `index`, and `index` in that order. All axes of the two
# have equal extents.
def sort_by_index(src, index, axis) {
  k = axis_of(axis, rank(src))
  order = argsort(index, axis=k)
  ids = take_in_axis(index, order, k)
  return take_in_axis(src, order, k), ids
}

# The shape of the part of x that `index` reaches: its own in all axes but this one.
def scatter_shape(x, axis, index) {
  k = axis_of(axis, rank(x))
  return index.shape[:k] + [dim(x, k)] + index.shape[k + 1:]
}

# The part of x of this shape at its begin: what `index` reaches of the argument `name`.
def first_part(x, shape, name) = x if is_same_shape(x.shape, shape) else slice(reached(x, shape, name), begin=[0] * rank(x), shape=shape)

# x, if it has the rank of the shape and no less along any axis.
def reached(x, shape, name) {
  has_rank = len(shape) == rank(x)
  is_good = loop k in 0:rank(x) with is_good = has_rank { return most(shape[k] - dim(x, k)) <= 0 if is_good else false }
  return x if is_good else error("`index` reaches past the end of `{name}`, or has another rank")
}

# x with `part` in place of its first part.
def with_first_part(x, part) {
  return loop k in 0:rank(x) with y = part {
    return y if dim(part, k) == dim(x, k) else with_rest(y, x, part, k)
  }
}

# y, which has the extents of x in the axes before axis k, with the rest of x along that axis.
def with_rest(y, x, part, k) {
  begin = [0] * k + [dim(part, k)] + [0] * (rank(x) - k - 1)
  shape = x.shape[:k] + [dim(x, k) - dim(part, k)] + part.shape[k + 1:]
  return concat([y, slice(x, begin=begin, shape=shape)], axis=k)
}

# The elements that are put in places: the first part of a tensor, or a number for all of them.
def scatter_source(x, index, src) {
  return first_part(src, index.shape, "src") if kind(src) == "tensor" else expand(const(src, dtype(x)), index.shape)
}

# `x` with the elements of `src`, a tensor or a number, at the places of the axis that `index` names, the last of
# several. `index` may be smaller than `x` in the other axes, and than `src` in all: their first parts count.
def scatter(x, axis, index, src) {
  places = places_beside(index, x)
  ids, order = sort(places, axis=axis)
  last = sorted_segment_max(order, ids, dim(x, axis), axis)
  z = first_part(x, scatter_shape(x, axis, places), "x")
  return with_first_part(x, where(last >= 0, scattered_at(src, places, last, axis), z))
}

# The elements of `src` at places of the axis, or a number itself.
def scattered_at(src, index, places, axis) {
  return take_of_axis(first_part(src, index.shape, "src"), places, axis_of(axis, rank(src))) if kind(src) == "tensor" else src
}

# x plus sums of its places; where a sum is 0, as that of nothing is, x itself, so that -0 stays.
def plus_sums(x, sums) = where(sums == 0, x, x + sums) if is_float(x) else x + sums

# `x` plus all elements of `src` that `index` puts in each place, as in `scatter`.
def scatter_add(x, axis, index, src) {
  places = places_beside(index, x)
  values, ids = sort_by_index(cast(scatter_source(x, places, src), compute(x)), places, axis)
  sums = sorted_segment_sum(values, ids, dim(x, axis), axis)
  z = cast(first_part(x, scatter_shape(x, axis, places), "x"), compute(x))
  return with_first_part(x, cast(plus_sums(z, sums), dtype(x)))
}

# The quotient of integers, cut off towards 0, of a dividend by a positive divisor, rounded down.
def floored(quotient, dividend, divisor) = where(quotient * divisor > dividend, quotient - 1, quotient)

# `reduce`, the word of a reduction. Another is an error.
def reduce_word(reduce) {
  is_word = kind(reduce) == "string"
  adds = reduce == "sum" || reduce == "mean" || reduce == "prod" if is_word else false
  is_good = adds || reduce == "amax" || reduce == "amin" if is_word else false
  return reduce if is_good else error("`reduce` is a string: sum, prod, mean, amax or amin, in quotes")
}

# `x` joined with all elements of `src` that `index` puts in each place, as in `scatter`: their "sum",
# "prod", "mean", "amax" or "amin". With include_self=false without the element of `x`, where there is another. A mean of
# integers is rounded down.
def scatter_reduce(x, axis, index, src, reduce, include_self=true) {
  places = places_beside(index, x)
  z = cast(first_part(x, scatter_shape(x, axis, places), "x"), compute(x))
  n = dim(x, axis)
  word = reduce_word(reduce)
  adds = word == "sum" || word == "mean"
  values, ids = sort_by_index(cast(scatter_source(x, places, src), compute(x)), places, axis)
  own = (sorted_segment_sum(values, ids, n, axis) if adds
         else sorted_segment_prod(values, ids, n, axis) if word == "prod"
         else sorted_segment_max(values, ids, n, axis) if word == "amax"
         else sorted_segment_min(values, ids, n, axis))
  both = (plus_sums(z, own) if adds else z * own if word == "prod"
          else maximum(z, own) if word == "amax" else minimum(z, own))
  count = sorted_segment_sum(ones(ids.shape, i32), ids, n, axis)
  all = both if include_self else where(count > 0, own, z)
  terms = count + 1 if include_self else maximum(count, 1)
  mean = all / cast(terms, compute(x)) if word == "mean" else all
  rounded = mean if is_float(x) || word != "mean" else floored(mean, all, cast(terms, compute(x)))
  return with_first_part(x, cast(rounded, dtype(x)))
}

# `source`, which has a slice of the axis for each number of `index`. Another is an error.
def indexed_slices(x, axis, index, source) {
  n = dim(index, 0)
  m = dim(of_rank(source, rank(x), rank(x), "source"), axis)
  return source if m == n else error("`source` has {m} slices, and `index` has {n} numbers")
}

# `x` plus the slices of `source` at the places of the axis that `index`, i32[n] or i64[n], names.
def index_add(x, axis, index, source) {
  k = axis_of(axis, rank(x))
  ids = of_rank(index_numbers(index, "`index`"), 1, 1, "index")
  slices = indexed_slices(x, k, ids, source)
  sums = segment_sum(cast(slices, compute(x)), ids, dim(x, k), k)
  return cast(plus_sums(cast(x, compute(x)), sums), dtype(x))
}

# `x` with the slices of `source` at the places of the axis that `index` names, the last of several.
def index_copy(x, axis, index, source) {
  k = axis_of(axis, rank(x))
  ids = of_rank(index_numbers(index, "`index`"), 1, 1, "index")
  slices = indexed_slices(x, k, ids, source)
  order = argsort(ids)
  last = sorted_segment_max(order, gather(ids, order), dim(x, k))
  is_new = reshape(last >= 0, [1] * k + [-1] + [1] * (rank(x) - k - 1))
  return where(is_new, gather(slices, last, axis=k), x)
}

# How often each number below `n` is an element of `x`, i32[n]. Few numbers are counted without a sort.
def bincount(x, n) = count_each(as_index(x), n) if most(n) <= 256 else count_sorted(as_index(x), n)

# The same by a comparison of each element with each number.
def count_each(x, n) {
  return sum(cast(reshape(x, [1, -1]) == reshape(cast(iota([n]), dtype(x)), [n, 1]), i32), axis=1)
}

# The same by a sort.
def count_sorted(x, n) {
  ids = gather(reshape(x, [-1]), argsort(reshape(x, [-1])))
  return sorted_segment_sum(ones(ids.shape, i32), ids, n)
}

# How many elements of `x` are in each of `bins` equal parts of min..max, i32[bins]. The last part has
# `max` too; elements outside, and NaN, are left out. The part of z is floor((z - min) * bins / (max - min)), as rounded.
def histc(x, bins, min, max) {
  z = cast(x, compute(x))
  width = max - min if max > min else error("`max` must be greater than `min`")
  part = cast(floor((z - min) * bins / width), i32)
  last = where(z == max, bins - 1, part)
  return bincount(where(z >= min && z <= max, minimum(last, bins - 1), -1), bins)
}

# How many elements of `x` are in each part between two neighbours of `bins`, edges in ascending order, i32[n - 1]. The
# last part has its upper edge too; elements outside, and NaN, are left out.
def histogram(x, bins) {
  z = reshape(x, [-1])
  part = searchsorted(bins, z, right=true) - 1
  n = dim(bins, 0) - 1
  return bincount(where(z <= bins[n:], minimum(part, extent(bins, 0) - 2), -1), n)
}

# `start`, an integer or a scalar tensor of integers. Another is an error.
def whole_start(start) = start if kind(start) == "integer" else scalar_start(start) if kind(start) == "tensor" else error("`starts` must be integers")
# The same of a tensor.
def scalar_start(start) {
  n = rank(start)
  return whole_numbers(start, "`starts`") if n == 0 else error("`starts` must be scalars, of rank 0, not {n}")
}

# A list of one item for each axis of x. Another is an error.
def each_axis(xs, x, name) {
  n = rank(x)
  m = len(xs) if is_list(xs) else -1
  is_good = m == n
  return xs if is_good else error("`{name}` must be a list of {n}, one for each axis of `x`")
}

# The part of `x` of the extents `sizes` that begins at the element `starts`, a number for each axis: scalars
# that are known at run time, or integers. They are clamped, so that the part lies inside.
def dynamic_slice(x, starts, sizes) {
  firsts = each_axis(starts, x, "starts")
  return loop k in 0:rank(x) with y = x {
    n = dim(x, k)
    own = each_axis(sizes, x, "sizes")[k]
    size = own if most(own - n) <= 0 else error("`sizes` has {own} for axis {k}, and `x` has {n} elements there")
    room = reshape(iota([n - size + 1], dtype=i64)[n - size:], [])
    first = minimum(maximum(cast(whole_start(firsts[k]), i64), 0), room)
    part = y if most(n - size) == 0 else gather(y, first + iota([size], dtype=i64), axis=k)
    return part
  }
}
