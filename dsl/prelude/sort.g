# Sorts

# The elements of the axis in ascending or descending order, and their indices (i32). Equal elements
# keep their order; NaN is the largest.
def sort(x, axis=-1, descending=false) {
  order = argsort(x, axis=axis, descending=descending)
  return take_of_axis(x, order, axis_of(axis, rank(x))), order
}

# The `k` largest elements of the axis, or the smallest, in order, and their indices (i32). Of equal
# elements the first come first; NaN is the largest. Few of the last axis are picked one by one.
def topk(x, k, axis=-1, largest=true) {
  a = axis_of(axis, rank(x))
  are_few = largest && is_float(x) && 1 <= k && k <= 8 && a == rank(x) - 1
  is_short = most(dim(x, a)) <= 4096
  picked = (pick_largest(x, k, a) if are_few && is_short else pick_in_tiles(x, k) if are_few && k <= 6
            else none)
  order = argsort(x, axis=a, descending=largest) if picked == none else picked
  at = slice(order, begin=[0] * rank(x), shape=x.shape[:a] + [k] + x.shape[a + 1:])
  return take_of_axis(x, at, a), at
}

# The indices of the `k` largest floats of the axis: of the largest, of the largest of the others, and so on. What was
# picked counts as -inf; where nothing else is left, the first index that was not picked is next.
def pick_largest(x, k, axis) {
  at = iota(x.shape, axis=axis)
  picked, _ = loop i in 0:k with picked = [], left = x {
    best = argmax(left, axis=axis, keep=true)
    free = loop c in i:-1:-1 with free = best { return where(is_among(picked, c), free, c) }
    next = where(is_among(picked, best), free, best)
    return picked + [next], where(at == next, -inf, left)
  }
  return concat(picked, axis=axis)
}

# The indices of the `k` largest floats of the last axis: those of each tile of 4096, and then those of all that were
# picked. Tiles have -inf behind the last element.
def pick_in_tiles(x, k) {
  a = rank(x) - 1
  front = x.shape[:a]
  m = (dim(x, a) + 4095) / 4096
  padded = pad(x, low=[0] * rank(x), high=[0] * a + [m * 4096 - dim(x, a)], value=-inf)
  tiles = reshape(padded, front + [m, 4096])
  own = pick_largest(tiles, k, a + 1)
  best = reshape(take_along_dim(tiles, own, axis=a + 1), front + [m * k])
  places = reshape(own + 4096 * iota(own.shape, axis=a), front + [m * k])
  return take_along_dim(places, pick_largest(best, k, a), axis=a)
}

# Whether an index, a tensor or a number, is one of `picked`.
def is_among(picked, index) = loop k in 0:len(picked) with found = cast(false, bool) {
  return found || picked[k] == index
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
  s, _ = sort(x, axis=a)
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
  n = dim(sorted_sequence, -1) if is_good else error("all axes but the last must have equal extents")
  n_bits = loop k in 0:31 with n_bits = 0 { return n_bits + 1 if 1 << k <= most(n) else n_bits }
  count = extent(sorted_sequence, -1)
  n_before = loop k in 0:n_bits with n_before = expand(const(0, i32), values.shape) {
    next = n_before + (1 << n_bits - 1 - k)
    last = minimum(next, count) - 1
    s = gather(sorted_sequence, last) if is_vector else take_along_dim(sorted_sequence, last)
    v_first = values < s || (s != s && values == values)
    s_first = s < values || (values != values && s == s)
    is_before = !v_first if right else s_first
    return where(next <= count && is_before, next, n_before)
  }
  return reshape(n_before, values.shape)
}

# The number of boundaries, in ascending order, that are below each element, or with `right=true` at most that.
def bucketize(x, boundaries, right=false) = searchsorted(boundaries, x, right)
