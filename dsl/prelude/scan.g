# Scans of any function

# Combines the elements of `axis` with all before them: element i of the result is
# combine(..combine(combine(x0, x1), x2).., xi). `combine` is a def or an op of two tensors with the
# shape of x, and associative: it joins parts of the axis, each made of one to 15 elements or parts.
# x may be a list of tensors; `combine` then takes two lists and gives one. `reverse=true` goes from
# the end.
def scan(combine, x, axis=0, reverse=false) {
  given = x if kind(combine) == "function" else error("the function of a scan is a def or an op, without quotes, as in scan(maximum, x)")
  xs = given if is_list(given) else [given]
  k = axis_of(axis, rank(xs[0]))
  n = most(dim(xs[0], k))
  is_good = scan_may_join(combine, xs, is_list(x)) && scan_is_level(xs, k)
  ordered = loop q in 0:len(xs) { return flip(xs[q], k) if is_good && reverse else xs[q] }
  may_fuse = is_good && n > 1 && is_elementwise(ordered, combine, is_list(x))
  is_short = n <= 4096
  ys = scan_levels(combine, ordered, k, n, is_list(x)) if !may_fuse else scan_elements(combine, ordered, k, is_list(x)) if is_short else scan_tiles(combine, ordered, k, is_list(x))
  zs = loop q in 0:len(xs) { return flip(ys[q], k) if reverse else ys[q] }
  return zs if is_list(x) else zs[0]
}

# The scan of tensors of one shape by a function whose ops are all elementwise: one kernel.
def scan_elements(combine, xs, k, takes_lists) {
  ys = loop q in 0:len(xs) { return scan_by(xs, combine, k, q, takes_lists) }
  return ys
}

# The same for an axis of more than 4096 elements, which are scanned apart in tiles: then the totals
# of the tiles are scanned, and each element is joined with the tiles before its own.
def scan_tiles(combine, xs, k, takes_lists) {
  n = dim(xs[0], k)
  m = (n + 4095) / 4096
  shape = xs[0].shape[:k] + [m, 4096] + xs[0].shape[k + 1:]
  tiles = loop q in 0:len(xs) {
    high = [0] * k + [m * 4096 - n] + [0] * (rank(xs[q]) - k - 1)
    return reshape(pad(xs[q], low=[0] * rank(xs[q]), high=high), shape)
  }
  own = scan_elements(combine, tiles, k + 1, takes_lists)
  totals = loop q in 0:len(xs) {
    begin = [0] * (k + 1) + [4095] + [0] * (rank(xs[q]) - k - 1)
    last = slice(own[q], begin=begin, shape=shape[:k + 1] + [1] + shape[k + 2:])
    return reshape(last, shape[:k + 1] + shape[k + 2:])
  }
  so_far = scan_elements(combine, totals, k, takes_lists)
  before = loop q in 0:len(xs) {
    shifted = gather(so_far[q], iota([m], axis=0) - 1, axis=k)
    return expand(reshape(shifted, shape[:k + 1] + [1] + shape[k + 2:]), shape)
  }
  joined = scan_join(combine, before, own, takes_lists)
  ys = loop q in 0:len(xs) {
    y = where(iota(shape, axis=k) > 0, joined[q], own[q])
    return slice(reshape(y, shape[:k] + [m * 4096] + shape[k + 2:]), begin=[0] * rank(xs[q]), shape=xs[q].shape)
  }
  return ys
}

# The scan by any other function, of an axis of up to n elements: up to 15 joins for each factor of 16 in n.
def scan_levels(combine, xs, k, n, takes_lists) {
  ys, _ = loop level in 0:16 with ys = xs, s = 1 {
    return ys if s >= n else scan_level(combine, ys, k, s, takes_lists), s if s >= n else 16 * s
  }
  return ys
}

# combine(before, xs), as a list.
def scan_join(combine, before, xs, takes_lists) {
  y = combine(before, xs) if takes_lists else combine(before[0], xs[0])
  return y if is_list(y) else [y]
}

# Whether `combine` gives the types that it takes.
def scan_may_join(combine, xs, takes_lists) {
  ys = scan_join(combine, xs, xs, takes_lists)
  n = len(xs) if len(ys) == len(xs) else error("the function of a scan must give as many tensors as it takes")
  are_like = loop q in 0:n with are_like = true { return are_like && scan_is_like(ys[q], xs[q]) }
  return are_like if are_like else error("the function of a scan must give the shapes and dtypes that it takes")
}

# Whether all have the same extent along the axis.
def scan_is_level(xs, k) {
  is_level = loop q in 0:len(xs) with is_level = true { return is_level && dim(xs[q], k) == dim(xs[0], k) }
  return is_level if is_level else error("the tensors of a scan have one extent along its axis")
}

# Whether y has the type of x.
def scan_is_like(y, x) = dtype(y) == dtype(x) && is_same_shape(y.shape, x.shape)

# Joins each element with up to 15 before it, `s` apart.
def scan_level(combine, xs, k, s, takes_lists) {
  c = (most(dim(xs[0], k)) - 1) / s
  n = c if c < 15 else 15
  y = loop j in n - 1:-1:-1 with y = scan_shift(xs, k, n * s) {
    here = scan_shift(xs, k, j * s)
    joined = scan_join(combine, y, here, takes_lists)
    zs = loop q in 0:len(xs) { return where(iota(xs[q].shape, axis=k) >= (j + 1) * s, joined[q], here[q]) }
    return zs
  }
  return y
}

# The tensors `d` places further along the axis.
def scan_shift(xs, k, d) {
  ys = loop q in 0:len(xs) {
    low = [0] * k + [d] + [0] * (rank(xs[q]) - k - 1)
    return slice(pad(xs[q], low=low, high=[0] * rank(xs[q])), begin=[0] * rank(xs[q]), shape=xs[q].shape)
  }
  return ys
}
