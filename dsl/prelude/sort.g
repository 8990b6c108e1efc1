# Sorts

# The elements of the axis in ascending or descending order, and their indices (i32). Equal elements
# keep their order; NaN is the largest.
def sort(x, axis=-1, descending=false) {
  order = argsort(x, axis=axis, descending=descending)
  return take_in_axis(x, order, axis_of(axis, rank(x))), order
}

# The `k` largest elements of the axis, or the smallest, in order, and their indices (i32). Of equal
# elements the first come first; NaN is the largest. Few floats of a long row are picked in tiles.
def topk(x, k, axis=-1, largest=true) {
  a = axis_of(axis, rank(x))
  n = dim(x, a)
  m = k if most(k - n) <= 0 && k >= 0 else error("`k` is {k}, and axis {a} of `x` has {n} elements")
  are_few = largest && is_float(x) && most(-k) < -1 && most(k) <= 64 && a == rank(x) - 1
  at = topk_in_tiles(x, m) if are_few && most(n) > 4096 else topk_at(x, m, a, largest)
  return take_in_axis(x, at, a), at
}

# The indices of the `k` largest or smallest elements of an axis: the begin of their order. Up to two floats are the
# largest one, and the largest one of the others.
def topk_at(x, k, axis, largest) {
  is_float_row = is_float(x) && axis == rank(x) - 1
  n = k if is_known(k) else 0
  return (argmax(x, axis=axis, keep=true) if n == 1 && largest
          else largest_two(x, axis) if n == 2 && largest && is_float_row
          else topk_of_order(x, k, axis, largest))
}

# The indices of the two largest floats: the first one counts as -inf when the second is found. If that finds it again,
# all are -inf.
def largest_two(x, axis) {
  first = argmax(x, axis=axis, keep=true)
  second = argmax(where(iota(x.shape, axis=axis) == first, -inf, x), axis=axis, keep=true)
  return concat([first, where(second == first, 1, second)], axis=axis)
}

# The same for any number.
def topk_of_order(x, k, axis, largest) {
  order = argsort(x, axis=axis, descending=largest)
  return slice(order, begin=[0] * rank(x), shape=x.shape[:axis] + [k] + x.shape[axis + 1:])
}

# The indices of the `k` largest floats of the last axis: those of each tile of 4096, and then those of all that were
# found. Tiles have -inf behind the last element.
def topk_in_tiles(x, k) {
  a = rank(x) - 1
  front = x.shape[:a]
  m = (dim(x, a) + 4095) / 4096
  padded = pad(x, low=[0] * rank(x), high=[0] * a + [m * 4096 - dim(x, a)], value=-inf)
  tiles = reshape(padded, front + [m, 4096])
  own = topk_of_order(tiles, k, a + 1, true)
  best = reshape(take_in_axis(tiles, own, a + 1), front + [m * k])
  places = reshape(own + 4096 * iota(own.shape, axis=a), front + [m * k])
  return take_in_axis(places, topk_of_order(best, k, a, true), a)
}

# The median of the axis, or with `axis=none` of all elements; of an even number of elements the lower one, and NaN if any
# element is NaN.
def median(x, axis=-1, keep=false) = median_of_all(x, keep) if axis == none else median_along(x, axis, keep)

# The median of all elements.
def median_of_all(x, keep) {
  y = median_along(reshape(x, [-1]), 0, false)
  return reshape(y, [1] * rank(x)) if keep else y
}

# The median of one axis.
def median_along(x, axis, keep) {
  a = axis_of(axis, rank(x))
  n = dim(x, a)
  front = x.shape[:a]
  back = x.shape[a + 1:]
  has_some = most(-n) < 0
  s, _ = sort(x if has_some else error("`x` may have no element to be the median: begin the ranges of its dims at 1"), axis=a)
  middle = slice(s, begin=[0] * a + [(n - 1) / 2] + [0] * (rank(x) - a - 1), shape=front + [1] + back)
  last = slice(s, begin=[0] * a + [n - 1] + [0] * (rank(x) - a - 1), shape=front + [1] + back)
  return reshape(where(last != last, last, middle), front + [1] + back if keep else front + back)
}

# The place of each value in the sorted last axis of `sorted_sequence` (i32): before equal elements, or with
# `right=true` behind them; NaN is the largest. All axes but the last have equal extents, or the sequence is a vector.
# A binary search: as many steps as the largest number of elements has bits.
def searchsorted(sorted_sequence, values, right=false) = places_of(sorted_sequence, as_operand(values, sorted_sequence), right)

# `searchsorted` of a tensor.
def places_of(sorted_sequence, values, right) {
  is_vector = rank(sorted_sequence) == 1
  is_good = true if is_vector else is_same_shape(sorted_sequence.shape[:-1], values.shape[:-1])
  is_alike = dtype(values) == dtype(sorted_sequence)
  n = dim(sorted_sequence, -1) if is_good else error("all axes but the last must have equal extents")
  own = values if is_alike else error("`values` and `sorted_sequence` must have one dtype")
  n_bits = loop k in 0:31 with n_bits = 0 { return n_bits + 1 if 1 << k <= most(n) else n_bits }
  count = extent(sorted_sequence, -1)
  n_before = loop k in 0:n_bits with n_before = expand(const(0, i32), own.shape) {
    next = n_before + (1 << n_bits - 1 - k)
    last = minimum(next, count) - 1
    s = gather(sorted_sequence, last) if is_vector else take_in_axis(sorted_sequence, last, rank(own) - 1)
    v_first = own < s || (s != s && own == own)
    s_first = s < own || (own != own && s == s)
    is_before = !v_first if right else s_first
    return where(next <= count && is_before, next, n_before)
  }
  return reshape(n_before, values.shape)
}

# The number of boundaries, in ascending order, that are below each element, or with `right=true` at most that.
def bucketize(x, boundaries, right=false) = searchsorted(boundaries, x, right)
