# Pooling
#
# An image without the axis of the batch, B, gives a result without it. `stride=none` is the size of the window. With
# `ceil_mode` a last window that begins inside x or the padding in front may end behind the padding, in elements that
# do not count.

# The padding behind each window axis of x with `ceil_mode`; without it none, which is that in front.
def pool_high(x, axis, size, stride, dilation, padding, ceil_mode) {
  n = len(size) if ceil_mode else 0
  highs = loop k in 0:n {
    s = each(size if stride == none else stride, n)[k]
    p = each(padding, n)[k]
    e = each(dilation, n)[k] * (size[k] - 1) + 1
    m = dim(x, axis[k]) + 2 * p
    last = (m - e + s - 1) / s
    begin = s * (last - 1 if last * s >= m - p else last)
    return p + (begin + e - m if begin + e >= m else 0)
  }
  return highs if ceil_mode else none
}

# The padding of a pool, which is no word: at most half of the window.
def pool_padding(padding, size, dilation) {
  n = 0 if kind(padding) == "string" else len(size)
  is_good = loop k in 0:n with is_good = true {
    half = (most(each(dilation, n)[k] * (size[k] - 1)) + 1) / 2
    return is_good && most(each(padding, n)[k]) <= half
  }
  return padding if is_good else error("`padding` must be at most half of the window")
}

# The windows of the last axes of x, as many as `size` has numbers.
def pool_windows(x, size, stride, dilation, padding, ceil_mode) {
  axis = loop k in 0:len(size) { return rank(x) - len(size) + k }
  high = pool_high(x, axis, size, stride, dilation, padding, ceil_mode)
  p = pool_padding(padding, size, dilation)
  own = size if ceil_mode else fitting(size, x, rank(x) - len(size), padding, dilation, "kernel_size")
  return windows(x, own, none, stride, dilation, p, none, high, value=lowest(dtype(x)))
}

# The places in the image, counted row by row, of the largest elements of windows t: [B, C, windows.., taps..], i32.
def max_pool_indices(x, t, size, stride, dilation, padding) {
  n = len(size)
  tap = argmax(reshape(t, t.shape[:n + 2] + [n_elements(size)]), axis=-1)
  return loop k in 0:n with index = expand(const(0, i32), tap.shape) {
    own = tap / n_elements(size[k + 1:]) % size[k]
    d = each(dilation, n)[k]
    s = each(size if stride == none else stride, n)[k]
    place = iota(tap.shape, axis=k + 2) * s - each(padding, n)[k] + own * d
    inside = maximum(place, 0) if d == 1 else place + (maximum(-place, 0) + (d - 1)) / d * d
    return index * dim(x, k + 2) + inside
  }
}

# What a maximum pooling returns: y, or with `return_indices` also the places in the image.
def max_pool_result(y, x, z, t, size, stride, dilation, padding, return_indices) {
  n = len(size) + 2
  i = unbatched(max_pool_indices(z, t, size, stride, dilation, padding), x, n) if return_indices else none
  return [unbatched(y, x, n), i] if return_indices else unbatched(y, x, n)
}

# x: [B, C, W]: the largest element of each window. With `return_indices` also its place
# in the image, counted row by row (i32): of several the first.
def max_pool1d(x, kernel_size, stride=none, padding=0, dilation=1, ceil_mode=false, return_indices=false) {
  size = each(kernel_size, 1)
  z = batched(x, 3)
  t = pool_windows(z, size, stride, dilation, padding, ceil_mode)
  y = max(transpose(t, perm=[3, 0, 1, 2]), axis=0)
  return max_pool_result(y, x, z, t, size, stride, dilation, padding, return_indices)
}

# x: [B, C, H, W]: the largest element of each window. `return_indices` as for `max_pool1d`.
def max_pool2d(x, kernel_size, stride=none, padding=0, dilation=1, ceil_mode=false, return_indices=false) {
  size = each(kernel_size, 2)
  z = batched(x, 4)
  t = pool_windows(z, size, stride, dilation, padding, ceil_mode)
  y = max(transpose(t, perm=[4, 5, 0, 1, 2, 3]), axis=[0, 1])
  return max_pool_result(y, x, z, t, size, stride, dilation, padding, return_indices)
}

# x: [B, C, D, H, W]: the largest element of each window. `return_indices` as for `max_pool1d`.
def max_pool3d(x, kernel_size, stride=none, padding=0, dilation=1, ceil_mode=false, return_indices=false) {
  size = each(kernel_size, 3)
  z = batched(x, 5)
  t = pool_windows(z, size, stride, dilation, padding, ceil_mode)
  y = max(transpose(t, perm=[5, 6, 7, 0, 1, 2, 3, 4]), axis=[0, 1, 2])
  return max_pool_result(y, x, z, t, size, stride, dilation, padding, return_indices)
}

# The largest elements of windows of x, [B, .., C], whose sizes are those of the axes between the two.
def max_pool_last(x, size, stride, dilation, padding, ceil_mode) {
  n = len(size)
  z = batched(x, n + 2)
  high = pool_high(z, [1, 2, 3][:n], size, stride, dilation, padding, ceil_mode)
  p = pool_padding(padding, size, dilation)
  t = windows(z, size, [1, 2, 3][:n], stride, dilation, p, none, high, value=lowest(dtype(x)))
  return unbatched(max(t, axis=[1, 2, 3, 4, 5, 6][n:2 * n]), x, n + 2)
}

# x: [B, W, C]: the largest element of each window.
def max_pool1d_nwc(x, kernel_size, stride=none, padding=0, dilation=1, ceil_mode=false) = max_pool_last(x, each(kernel_size, 1), stride, dilation, padding, ceil_mode)

# x: [B, H, W, C]: the largest element of each window.
def max_pool2d_nhwc(x, kernel_size, stride=none, padding=0, dilation=1, ceil_mode=false) = max_pool_last(x, each(kernel_size, 2), stride, dilation, padding, ceil_mode)

# x: [B, D, H, W, C]: the largest element of each window.
def max_pool3d_ndhwc(x, kernel_size, stride=none, padding=0, dilation=1, ceil_mode=false) = max_pool_last(x, each(kernel_size, 3), stride, dilation, padding, ceil_mode)

# The means of windows of x over `axis`, whose taps `perm` brings to the front, as `taps`.
def avg_pool_over(image, size, axis, perm, taps, stride, padding, count_include_pad, ceil_mode, divisor) {
  x = batched(image, len(size) + 2)
  at = axis if axis != none else [2, 3, 4][:len(size)]
  has_divisor = true if divisor == none else divisor != 0
  high = pool_high(x, at, size, stride, 1, padding, ceil_mode) if has_divisor else error("`divisor_override` is 0")
  p = pool_padding(padding, size, 1)
  z = transpose(windows(cast(x, compute(x)), size, axis, stride, 1, p, none, high), perm=perm)
  is_mean = count_include_pad && !ceil_mode && divisor == none
  has_count = !is_mean && divisor == none
  counted = pool_counted(x, size, at, perm, stride, padding, high, count_include_pad) if has_count else none
  y = mean(z, axis=taps) if is_mean else sum(z, axis=taps) / (sum(counted, axis=taps) if divisor == none else divisor)
  return unbatched(cast(y, dtype(x)), image, len(size) + 2)
}

# 1 where an element of a window counts: those of x, or of x and the padding in front and, as much, behind.
def pool_counted(x, size, axis, perm, stride, padding, high, count_include_pad) {
  n = len(size)
  shape = loop k in 0:rank(x) with shape = [] {
    p = loop j in 0:n with p = 0 { return 2 * each(padding, n)[j] if axis[j] == k && count_include_pad else p }
    return shape + [dim(x, k) + p]
  }
  rest = loop j in 0:n { return each(high, n)[j] - each(padding, n)[j] if count_include_pad else each(high, n)[j] }
  low = 0 if count_include_pad else padding
  ends = none if high == none else rest
  all = windows(expand(cast(true, bool), shape), size, axis, stride, 1, low, none, ends, value=false)
  return cast(transpose(all, perm=perm), compute(x))
}

# x: [B, C, W]: the mean of each window. With `count_include_pad=false` only elements of x count;
# `divisor_override` divides their sum in place of their number.
def avg_pool1d(x, kernel_size, stride=none, padding=0, count_include_pad=true, ceil_mode=false, divisor_override=none) {
  perm = [3, 0, 1, 2]
  size = each(kernel_size, 1)
  return avg_pool_over(x, size, none, perm, 0, stride, padding, count_include_pad, ceil_mode, divisor_override)
}

# x: [B, C, H, W]: the mean of each window.
def avg_pool2d(x, kernel_size, stride=none, padding=0, count_include_pad=true, ceil_mode=false, divisor_override=none) {
  perm = [4, 5, 0, 1, 2, 3]
  size = each(kernel_size, 2)
  return avg_pool_over(x, size, none, perm, [0, 1], stride, padding, count_include_pad, ceil_mode, divisor_override)
}

# x: [B, C, D, H, W]: the mean of each window.
def avg_pool3d(x, kernel_size, stride=none, padding=0, count_include_pad=true, ceil_mode=false, divisor_override=none) {
  perm = [5, 6, 7, 0, 1, 2, 3, 4]
  size = each(kernel_size, 3)
  return avg_pool_over(x, size, none, perm, [0, 1, 2], stride, padding, count_include_pad, ceil_mode, divisor_override)
}

# x: [B, W, C]: the mean of each window.
def avg_pool1d_nwc(x, kernel_size, stride=none, padding=0, count_include_pad=true, ceil_mode=false, divisor_override=none) {
  perm = [2, 0, 1, 3]
  size = each(kernel_size, 1)
  return avg_pool_over(x, size, [1], perm, 0, stride, padding, count_include_pad, ceil_mode, divisor_override)
}

# x: [B, H, W, C]: the mean of each window.
def avg_pool2d_nhwc(x, kernel_size, stride=none, padding=0, count_include_pad=true, ceil_mode=false, divisor_override=none) {
  perm = [3, 4, 0, 1, 2, 5]
  size = each(kernel_size, 2)
  return avg_pool_over(x, size, [1, 2], perm, [0, 1], stride, padding, count_include_pad, ceil_mode, divisor_override)
}

# x: [B, D, H, W, C]: the mean of each window.
def avg_pool3d_ndhwc(x, kernel_size, stride=none, padding=0, count_include_pad=true, ceil_mode=false, divisor_override=none) {
  perm = [4, 5, 6, 0, 1, 2, 3, 7]
  size = each(kernel_size, 3)
  return avg_pool_over(x, size, [1, 2, 3], perm, [0, 1, 2], stride, padding, count_include_pad, ceil_mode, divisor_override)
}

# The `norm_type`-th root of the sum of the `norm_type`-th powers of each window of the last axes of x. A window that
# ends behind x, as `ceil_mode` allows, counts as if its mean filled it.
def lp_pool(x, norm_type, size, stride, perm, taps, ceil_mode) {
  powers = pow(cast(batched(x, len(size) + 2), compute(x)), norm_type)
  whole = none if ceil_mode else sum(transpose(windows(powers, size, none, stride), perm=perm), axis=taps)
  means = avg_pool_over(powers, size, none, perm, taps, stride, 0, true, true, none) if ceil_mode else none
  sums = whole if means == none else means * n_elements(size)
  return unbatched(cast(pow(sums, 1.0 / norm_type), dtype(x)), x, len(size) + 2)
}

# x: [B, C, W]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool1d(x, norm_type, kernel_size, stride=none, ceil_mode=false) {
  return lp_pool(x, norm_type, each(kernel_size, 1), stride, [3, 0, 1, 2], 0, ceil_mode)
}

# x: [B, C, H, W]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool2d(x, norm_type, kernel_size, stride=none, ceil_mode=false) {
  return lp_pool(x, norm_type, each(kernel_size, 2), stride, [4, 5, 0, 1, 2, 3], [0, 1], ceil_mode)
}

# x: [B, C, D, H, W]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool3d(x, norm_type, kernel_size, stride=none, ceil_mode=false) {
  return lp_pool(x, norm_type, each(kernel_size, 3), stride, [5, 6, 7, 0, 1, 2, 3, 4], [0, 1, 2], ceil_mode)
}

# x: [B, W, C]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool1d_nwc(x, norm_type, kernel_size, stride=none, ceil_mode=false) = channels_last(lp_pool1d(channels_first(x, 1), norm_type, kernel_size, stride, ceil_mode), 1)

# x: [B, H, W, C]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool2d_nhwc(x, norm_type, kernel_size, stride=none, ceil_mode=false) = channels_last(lp_pool2d(channels_first(x, 2), norm_type, kernel_size, stride, ceil_mode), 2)

# x: [B, D, H, W, C]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool3d_ndhwc(x, norm_type, kernel_size, stride=none, ceil_mode=false) = channels_last(lp_pool3d(channels_first(x, 3), norm_type, kernel_size, stride, ceil_mode), 3)

# The extents that an adaptive pooling gives the last axes of x: with none that of x.
def adaptive_sizes(x, output_size, n) {
  return loop k in 0:n {
    own = each(output_size, n)[k]
    size = dim(x, rank(x) - n + k) if own == none else own
    return size if most(-size) < 0 else error("`output_size` must be at least 1, not {size}")
  }
}

# The means or maxima of equal parts of the last axes of x, as many as `o` says for each.
def adaptive_even(x, o, is_max) {
  k = rank(x) - len(o)
  shape, axes = loop i in 0:len(o) with shape = x.shape[:k], axes = [] {
    return shape + [o[i], dim(x, k + i) / o[i]], axes + [k + 2 * i + 1]
  }
  parts = reshape(x, shape)
  return max(parts, axis=axes) if is_max else mean(parts, axis=axes)
}

# The means or maxima of `o` parts of one axis: part i goes from i n / o, rounded down, to (i + 1) n / o,
# rounded up.
def adaptive_axis(x, axis, o, is_max) {
  n = dim(x, axis)
  ys = loop i in 0:o {
    begin = i * n / o
    size = ((i + 1) * n + o - 1) / o - begin
    low = [0] * axis + [begin] + [0] * (rank(x) - axis - 1)
    part = slice(x, begin=low, shape=x.shape[:axis] + [size] + x.shape[axis + 1:])
    return max(part, axis=axis, keep=true) if is_max else mean(part, axis=axis, keep=true)
  }
  return concat(ys, axis=axis)
}

# The same where the axis is a dim: each part is the axis without the elements outside.
def adaptive_counted(x, axis, o, is_max) {
  t = place_type(dim(x, axis) * o + o)
  behind = [1] * (rank(x) - axis - 1)
  n = extent(x, axis, t)
  i = iota([o], dtype=t)
  begin = i * n / o
  end = ((i + 1) * n + (o - 1)) / o
  k = iota([dim(x, axis)], dtype=t)
  z = unsqueeze(x, axis)
  inside = reshape(k >= unsqueeze(begin, 1) && k < unsqueeze(end, 1), [o, dim(x, axis)] + behind)
  count = reshape(cast(end - begin, dtype(x)), [o] + behind)
  sums = none if is_max else sum(where(inside, z, -0.0), axis=axis + 1) / count
  return max(where(inside, z, -inf), axis=axis + 1) if is_max else sums
}

# The same for all of the last axes, one after the other.
def adaptive_uneven(x, o, is_max) {
  y = loop i in 0:len(o) with y = cast(x, compute(x)) {
    k = rank(x) - len(o) + i
    is_same = most(dim(x, k) - o[i]) == 0 && most(o[i] - dim(x, k)) == 0
    parts = none if is_same || !is_known(dim(x, k)) else adaptive_axis(y, k, o[i], is_max)
    return y if is_same else adaptive_counted(y, k, o[i], is_max) if parts == none else parts
  }
  return cast(y, dtype(x))
}

# The means or maxima of parts of the last axes of x, as many as `o` says for each.
def adaptive_pool(x, o, is_max) {
  k = rank(of_rank(x, len(o) + 1, len(o) + 2)) - len(o)
  even = loop i in 0:len(o) with even = true { return even && most(dim(x, k + i) % o[i]) == 0 }
  return adaptive_even(x, o, is_max) if even else adaptive_uneven(x, o, is_max)
}

# Means of `output_size` parts of the last axis of x: [B, C, W]. With none as many as x has elements there.
def adaptive_avg_pool1d(x, output_size) = adaptive_pool(x, adaptive_sizes(x, output_size, 1), false)

# Means of parts of the last two axes of x: [B, C, H, W].
def adaptive_avg_pool2d(x, output_size) = adaptive_pool(x, adaptive_sizes(x, output_size, 2), false)

# Means of parts of the last three axes of x: [B, C, D, H, W].
def adaptive_avg_pool3d(x, output_size) = adaptive_pool(x, adaptive_sizes(x, output_size, 3), false)

# Means of `output_size` parts of the axes of x between the first and the last: [B, W, C].
def adaptive_avg_pool1d_nwc(x, output_size) = channels_last(adaptive_avg_pool1d(channels_first(x, 1), output_size), 1)

# Means of `output_size` parts of the axes of x between the first and the last: [B, H, W, C].
def adaptive_avg_pool2d_nhwc(x, output_size) = channels_last(adaptive_avg_pool2d(channels_first(x, 2), output_size), 2)

# Means of `output_size` parts of the axes of x between the first and the last: [B, D, H, W, C].
def adaptive_avg_pool3d_ndhwc(x, output_size) = channels_last(adaptive_avg_pool3d(channels_first(x, 3), output_size), 3)

# The maxima of `o` parts of one axis of x, and their places: `places` are those of x, and `width` lies between
# neighbours along the axis. Of several maxima the first counts.
def adaptive_max_axis(x, places, axis, o, width) {
  n = dim(x, axis)
  ys, indices = loop i in 0:o {
    begin = i * n / o
    low = [0] * axis + [begin] + [0] * (rank(x) - axis - 1)
    shape = x.shape[:axis] + [((i + 1) * n + o - 1) / o - begin] + x.shape[axis + 1:]
    part = slice(x, begin=low, shape=shape)
    at = iota(shape, axis=axis)
    is_it = at == unsqueeze(argmax(part, axis=axis), axis)
    place = slice(places, begin=low, shape=shape) + (at + begin) * width
    return max(part, axis=axis, keep=true), sum(where(is_it, place, 0), axis=axis, keep=true)
  }
  return concat(ys, axis=axis), concat(indices, axis=axis)
}

# The maxima of parts of the last axes of x, and their places in the image, counted row by row (i32). The last axis comes
# first, so that of several maxima the first one counts.
def adaptive_max_places(x, o) {
  none_yet = expand(const(0, i32), of_rank(x, len(o) + 1, len(o) + 2).shape)
  y, places, _ = loop i in len(o)-1:-1:-1 with y = x, places = none_yet, width = 1 {
    axis = rank(x) - len(o) + i
    z, index = adaptive_max_axis(y, places, axis, o[i], width)
    return z, index, width * dim(x, axis)
  }
  return y, places
}

# The maxima of parts, or with `return_indices` also their places.
def adaptive_max_pool(x, o, return_indices) {
  return adaptive_max_places(x, o) if return_indices else adaptive_pool(x, o, true)
}

# Maxima of `output_size` parts of the last axis of x: [B, C, W]. `return_indices` as for `max_pool1d`.
def adaptive_max_pool1d(x, output_size, return_indices=false) = adaptive_max_pool(x, adaptive_sizes(x, output_size, 1), return_indices)

# Maxima of parts of the last two axes of x: [B, C, H, W]. `return_indices` as for `max_pool1d`.
def adaptive_max_pool2d(x, output_size, return_indices=false) = adaptive_max_pool(x, adaptive_sizes(x, output_size, 2), return_indices)

# Maxima of parts of the last three axes of x: [B, C, D, H, W]. `return_indices` as for `max_pool1d`.
def adaptive_max_pool3d(x, output_size, return_indices=false) = adaptive_max_pool(x, adaptive_sizes(x, output_size, 3), return_indices)

# Maxima of `output_size` parts of the axes of x between the first and the last: [B, W, C].
def adaptive_max_pool1d_nwc(x, output_size) = channels_last(adaptive_max_pool1d(channels_first(x, 1), output_size), 1)

# Maxima of `output_size` parts of the axes of x between the first and the last: [B, H, W, C].
def adaptive_max_pool2d_nhwc(x, output_size) = channels_last(adaptive_max_pool2d(channels_first(x, 2), output_size), 2)

# Maxima of `output_size` parts of the axes of x between the first and the last: [B, D, H, W, C].
def adaptive_max_pool3d_ndhwc(x, output_size) = channels_last(adaptive_max_pool3d(channels_first(x, 3), output_size), 3)
