# Sorts

# The elements of the axis in ascending or descending order, and their indices (i32). Equal elements
# keep their order; NaN is the largest.
def sort(x, axis=-1, descending=false) {
  order = argsort(x, axis=axis, descending=descending)
  return take_along_dim(x, order, axis=axis), order
}

# The `k` largest elements of the axis, or the smallest, in order, and their indices (i32). Of equal
# elements the first come first; NaN is the largest.
def topk(x, k, axis=-1, largest=true) {
  a = (axis + rank(x)) % rank(x)
  order = argsort(x, axis=a, descending=largest)
  at = slice(order, begin=[0] * rank(x), shape=x.shape[:a] + [k] + x.shape[a + 1:])
  return take_along_dim(x, at, axis=a), at
}

# The median of the axis, of an even number of elements the lower one; NaN if any element is NaN.
def median(x, axis=-1, keep=false) {
  a = (axis + rank(x)) % rank(x)
  n = dim(x, a)
  front = x.shape[:a]
  back = x.shape[a + 1:]
  s, _ = sort(x, axis=a)
  middle = slice(s, begin=[0] * a + [(n - 1) / 2] + [0] * (rank(x) - a - 1), shape=front + [1] + back)
  last = slice(s, begin=[0] * a + [n - 1] + [0] * (rank(x) - a - 1), shape=front + [1] + back)
  return reshape(where(last != last, last, middle), front + [1] + back if keep else front + back)
}

# The place of each value in the sorted last axis of `sorted_sequence` (i32): before equal elements,
# or with `right=true` behind them. All axes but the last have equal extents.
def searchsorted(sorted_sequence, values, right=false) {
  k = rank(values) - 1
  both = concat([sorted_sequence, values] if right else [values, sorted_sequence], axis=k)
  place = argsort(argsort(both, axis=k), axis=k)
  first = dim(sorted_sequence, k) if right else 0
  own = slice(place, begin=[0] * k + [first], shape=values.shape)
  return own - argsort(argsort(values, axis=k), axis=k)
}
