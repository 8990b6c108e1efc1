# Convolutions and pooling

# The sum over taps and channels, in this order, that all convolutions are.
# t: [B, D, H, W, T, G, c], weight: [T * c, G * m] -> [B, D, H, W, G * m]
def conv_taps(t, weight, bias, out=dtype(t)) {
  n = t.shape
  k = dim(weight, 0)
  m = dim(weight, 1) / n[5]
  rows = reshape(transpose(t, perm=[5, 0, 1, 2, 3, 4, 6]), [n[5], n[0], n[1], n[2], n[3], k])
  columns = reshape(transpose(reshape(weight, [k, n[5], m]), perm=[1, 0, 2]), [n[5], 1, 1, 1, k, m])
  y = transpose(matmul(rows, columns, out=out), perm=[1, 2, 3, 4, 0, 5])
  return reshape(y, [n[0], n[1], n[2], n[3], dim(weight, 1)]) + bias
}

# x: [B, W, C], weight: [k, C / groups, N] -> [B, windows, N]. `bias` is [N], or a number.
def conv1d_nwc(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  k = weight.shape
  n = windows(x, size=[k[0]], axis=[1], stride=stride, padding=padding, dilation=dilation)
  t = reshape(n, [dim(n, 0), 1, 1, dim(n, 1), k[0], groups, k[1]])
  y = conv_taps(t, reshape(weight, [k[0] * k[1], k[2]]), bias, out)
  return y[:, 0, 0]
}

# x: [B, H, W, C], weight: [k, l, C / groups, N] -> [B, windows.., N]. `bias` is [N], or a number.
def conv2d_nhwc(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  k = weight.shape
  n = windows(x, size=[k[0], k[1]], axis=[1, 2], stride=stride, padding=padding, dilation=dilation)
  t = reshape(n, [dim(n, 0), 1, dim(n, 1), dim(n, 2), k[0] * k[1], groups, k[2]])
  y = conv_taps(t, reshape(weight, [k[0] * k[1] * k[2], k[3]]), bias, out)
  return y[:, 0]
}

# x: [B, D, H, W, C], weight: [k, l, m, C / groups, N] -> [B, windows.., N]. `bias` is [N], or a number.
def conv3d_ndhwc(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  k = weight.shape
  size = [k[0], k[1], k[2]]
  n = windows(x, size=size, axis=[1, 2, 3], stride=stride, padding=padding, dilation=dilation)
  t = reshape(n, [dim(n, 0), dim(n, 1), dim(n, 2), dim(n, 3), k[0] * k[1] * k[2], groups, k[3]])
  return conv_taps(t, reshape(weight, [k[0] * k[1] * k[2] * k[3], k[4]]), bias, out)
}

# x: [B, C, W], weight: [N, C / groups, k] -> [B, N, windows]. `padding` is numbers, "same" or "causal".
def conv1d(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  w = transpose(weight, perm=[2, 1, 0])
  y = conv1d_nwc(transpose(x, perm=[0, 2, 1]), w, bias, stride, padding, dilation, groups, out)
  return transpose(y, perm=[0, 2, 1])
}

# x: [B, C, H, W], weight: [N, C / groups, k, l] -> [B, N, windows..]. `padding` is numbers or "same".
def conv2d(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  w = transpose(weight, perm=[2, 3, 1, 0])
  y = conv2d_nhwc(transpose(x, perm=[0, 2, 3, 1]), w, bias, stride, padding, dilation, groups, out)
  return transpose(y, perm=[0, 3, 1, 2])
}

# x: [B, C, D, H, W], weight: [N, C / groups, k, l, m] -> [B, N, windows..].
def conv3d(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  w = transpose(weight, perm=[2, 3, 4, 1, 0])
  y = conv3d_ndhwc(transpose(x, perm=[0, 2, 3, 4, 1]), w, bias, stride, padding, dilation, groups, out)
  return transpose(y, perm=[0, 4, 1, 2, 3])
}

# The weights of the convolution that a transposed one is: [C, m, k, l, o] -> [k, l, o, C / groups, groups * m],
# backwards along k, l and o.
def conv_transpose_weights(weight, groups) {
  n = weight.shape
  c = n[0] / groups
  w = reshape(weight[:, :, ::-1, ::-1, ::-1], [groups, c, n[1], n[2], n[3], n[4]])
  return reshape(transpose(w, perm=[3, 4, 5, 1, 0, 2]), [n[2], n[3], n[4], c, groups * n[1]])
}

# The weights of the convolution that a strided transposed one is: [C, m, t * s, ..] -> [t, .., C / groups, groups *
# s * .. * m]. Results s apart have the same taps, and are a channel of their own.
def conv_transpose_phases(weight, t, s, groups) {
  c = dim(weight, 0)
  m = dim(weight, 1)
  w = reshape(weight, [c, m, t[0], s[0], t[1], s[1], t[2], s[2]])[:, :, ::-1, :, ::-1, :, ::-1]
  phases = s[0] * s[1] * s[2] * m
  own = reshape(transpose(w, perm=[2, 4, 6, 0, 3, 5, 7, 1]), [t[0] * t[1] * t[2], groups, c / groups, phases])
  return reshape(transpose(own, perm=[0, 2, 1, 3]), [t[0], t[1], t[2], c / groups, groups * phases])
}

# Moves the channels of phases between the results: [B, D, H, W, groups * s * .. * m] -> [B, D * s, .., groups * m].
def conv_transpose_shuffle(y, s, groups) {
  n = y.shape
  m = n[4] / (groups * s[0] * s[1] * s[2])
  d = reshape(y, [n[0], n[1], n[2] * n[3], groups, s[0], s[1] * s[2] * m])
  h = reshape(transpose(d, perm=[0, 1, 4, 2, 3, 5]), [n[0] * n[1] * s[0], n[2], n[3], groups, s[1], s[2], m])
  return reshape(transpose(h, perm=[0, 1, 4, 2, 5, 3, 6]), [n[0], n[1] * s[0], n[2] * s[1], n[3] * s[2], groups * m])
}

# A transposed convolution of a stride. No product has a factor that lies between elements of the image. If the
# dilation is a multiple of the stride, all results but one in `stride` are zeros: these have no product at all.
def conv_transpose_strided(x, weight, bias, s, p, o, groups, d, out) {
  n = x.shape
  k = [dim(weight, 2), dim(weight, 3), dim(weight, 4)]
  g = [s[0] if d[0] % s[0] == 0 else 1, s[1] if d[1] % s[1] == 0 else 1, s[2] if d[2] % s[2] == 0 else 1]
  r = [s[0] / g[0], s[1] / g[1], s[2] / g[2]]
  own = [1 if r[0] > 1 else d[0] / g[0], 1 if r[1] > 1 else d[1] / g[1], 1 if r[2] > 1 else d[2] / g[2]]
  e = [d[0] if r[0] > 1 else 1, d[1] if r[1] > 1 else 1, d[2] if r[2] > 1 else 1]
  t = [(e[0] * (k[0] - 1) + r[0]) / r[0], (e[1] * (k[1] - 1) + r[1]) / r[1], (e[2] * (k[2] - 1) + r[2]) / r[2]]
  w = pad(weight, low=[0, 0, 0, 0, 0], interior=[0, 0, e[0] - 1, e[1] - 1, e[2] - 1],
          high=[0, 0, t[0] * r[0] - e[0] * (k[0] - 1) - 1, t[1] * r[1] - e[1] * (k[1] - 1) - 1,
                t[2] * r[2] - e[2] * (k[2] - 1) - 1])
  a = [own[0] * (t[0] - 1), own[1] * (t[1] - 1), own[2] * (t[2] - 1)]
  z = pad(transpose(x, perm=[0, 2, 3, 4, 1]), low=[0, a[0], a[1], a[2], 0], high=[0, a[0], a[1], a[2], 0])
  y = conv3d_ndhwc(z, conv_transpose_phases(w, t, r, groups), dilation=own, groups=groups, out=out)
  all = pad(conv_transpose_shuffle(y, r, groups), low=[0, 0, 0, 0, 0], high=[0, o[0], o[1], o[2], 0],
            interior=[0, g[0] - 1, g[1] - 1, g[2] - 1, 0])
  m = [(n[2] - 1) * s[0] + d[0] * (k[0] - 1) + 1 + o[0] - p[0], (n[3] - 1) * s[1] + d[1] * (k[1] - 1) + 1 + o[1] - p[1],
       (n[4] - 1) * s[2] + d[2] * (k[2] - 1) + 1 + o[2] - p[2]]
  return transpose(all[:, p[0]:m[0], p[1]:m[1], p[2]:m[2]] + bias, perm=[0, 4, 1, 2, 3])
}

# A transposed convolution of stride 1.
def conv_transpose_dense(x, weight, bias, p, o, groups, d, out) {
  w = conv_transpose_weights(weight, groups)
  r = [d[0] * (dim(w, 0) - 1), d[1] * (dim(w, 1) - 1), d[2] * (dim(w, 2) - 1)]
  z = pad(transpose(x, perm=[0, 2, 3, 4, 1]), low=[0, r[0], r[1], r[2], 0],
          high=[0, r[0] + o[0], r[1] + o[1], r[2] + o[2], 0])
  n = z.shape
  z_cut = z[:, p[0]:n[1] - p[0], p[1]:n[2] - p[1], p[2]:n[3] - p[2]]
  return transpose(conv3d_ndhwc(z_cut, w, bias, dilation=d, groups=groups, out=out), perm=[0, 4, 1, 2, 3])
}

# x: [B, C, D, H, W], weight: [C, N / groups, k, l, m] -> [B, N, ..]: conv3d's transpose as a linear map.
def conv_transpose3d(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  s = each(stride, 3)
  p = each(padding, 3)
  o = each(output_padding, 3)
  d = each(dilation, 3)
  dense = conv_transpose_dense(x, weight, bias, p, o, groups, d, out) if s[0] * s[1] * s[2] == 1 else none
  return conv_transpose_strided(x, weight, bias, s, p, o, groups, d, out) if dense == none else dense
}

# x: [B, C, H, W], weight: [C, N / groups, k, l] -> [B, N, ..]: conv2d's transpose as a linear map.
def conv_transpose2d(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  s = each(stride, 2)
  p = each(padding, 2)
  o = each(output_padding, 2)
  d = each(dilation, 2)
  n = x.shape
  k = weight.shape
  z = reshape(x, [n[0], n[1], 1, n[2], n[3]])
  w = reshape(weight, [k[0], k[1], 1, k[2], k[3]])
  y = conv_transpose3d(z, w, bias, [1, s[0], s[1]], [0, p[0], p[1]], [0, o[0], o[1]], groups, [1, d[0], d[1]], out)
  return y[:, :, 0]
}

# x: [B, C, W], weight: [C, N / groups, k] -> [B, N, ..]: conv1d's transpose as a linear map.
def conv_transpose1d(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  n = x.shape
  k = weight.shape
  z = reshape(x, [n[0], n[1], 1, n[2]])
  w = reshape(weight, [k[0], k[1], 1, k[2]])
  y = conv_transpose2d(z, w, bias, [1, each(stride, 1)[0]], [0, each(padding, 1)[0]],
                       [0, each(output_padding, 1)[0]], groups, [1, each(dilation, 1)[0]], out)
  return y[:, :, 0]
}

# x: [B, C, W]: the largest element of each window. `stride=none` is the size of the window.
def max_pool1d(x, kernel_size, stride=none, padding=0, dilation=1) {
  t = windows(x, each(kernel_size, 1), none, stride, dilation, padding, value=-inf)
  return max(transpose(t, perm=[3, 0, 1, 2]), axis=0)
}

# x: [B, C, H, W]: the largest element of each window.
def max_pool2d(x, kernel_size, stride=none, padding=0, dilation=1) {
  t = windows(x, each(kernel_size, 2), none, stride, dilation, padding, value=-inf)
  return max(transpose(t, perm=[4, 5, 0, 1, 2, 3]), axis=[0, 1])
}

# x: [B, C, D, H, W]: the largest element of each window.
def max_pool3d(x, kernel_size, stride=none, padding=0, dilation=1) {
  t = windows(x, each(kernel_size, 3), none, stride, dilation, padding, value=-inf)
  return max(transpose(t, perm=[5, 6, 7, 0, 1, 2, 3, 4]), axis=[0, 1, 2])
}

# x: [B, H, W, C]: the largest element of each window.
def max_pool2d_nhwc(x, kernel_size, stride=none, padding=0, dilation=1) {
  return max(windows(x, each(kernel_size, 2), [1, 2], stride, dilation, padding, value=-inf), axis=[3, 4])
}

# The means of windows of x over `axis`, whose taps `perm` brings to the front, as `taps`.
def avg_pool_over(x, size, axis, perm, taps, stride, padding, count_include_pad) {
  z = transpose(windows(cast(x, compute(x)), size, axis, stride, 1, padding), perm=perm)
  all = windows(expand(cast(true, bool), x.shape), size, axis, stride, 1, padding, value=false)
  counted = cast(transpose(all, perm=perm), compute(x))
  y = mean(z, axis=taps) if count_include_pad else sum(z, axis=taps) / sum(counted, axis=taps)
  return cast(y, dtype(x))
}

# x: [B, C, W]: the mean of each window. With `count_include_pad=false` only elements of x count.
def avg_pool1d(x, kernel_size, stride=none, padding=0, count_include_pad=true) {
  return avg_pool_over(x, each(kernel_size, 1), none, [3, 0, 1, 2], 0, stride, padding, count_include_pad)
}

# x: [B, C, H, W]: the mean of each window.
def avg_pool2d(x, kernel_size, stride=none, padding=0, count_include_pad=true) {
  perm = [4, 5, 0, 1, 2, 3]
  return avg_pool_over(x, each(kernel_size, 2), none, perm, [0, 1], stride, padding, count_include_pad)
}

# x: [B, C, D, H, W]: the mean of each window.
def avg_pool3d(x, kernel_size, stride=none, padding=0, count_include_pad=true) {
  perm = [5, 6, 7, 0, 1, 2, 3, 4]
  return avg_pool_over(x, each(kernel_size, 3), none, perm, [0, 1, 2], stride, padding, count_include_pad)
}

# x: [B, H, W, C]: the mean of each window.
def avg_pool2d_nhwc(x, kernel_size, stride=none, padding=0, count_include_pad=true) {
  perm = [3, 4, 0, 1, 2, 5]
  return avg_pool_over(x, each(kernel_size, 2), [1, 2], perm, [0, 1], stride, padding, count_include_pad)
}

# x: [B, C, W]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool1d(x, norm_type, kernel_size, stride=none) {
  t = windows(pow(cast(x, compute(x)), norm_type), each(kernel_size, 1), none, stride)
  return cast(pow(sum(transpose(t, perm=[3, 0, 1, 2]), axis=0), 1.0 / norm_type), dtype(x))
}

# x: [B, C, H, W]: the `norm_type`-th root of the sum of the `norm_type`-th powers of each window.
def lp_pool2d(x, norm_type, kernel_size, stride=none) {
  t = windows(pow(cast(x, compute(x)), norm_type), each(kernel_size, 2), none, stride)
  return cast(pow(sum(transpose(t, perm=[4, 5, 0, 1, 2, 3]), axis=[0, 1]), 1.0 / norm_type), dtype(x))
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

# The same for all of the last axes, one after the other.
def adaptive_uneven(x, o, is_max) {
  y = loop i in 0:len(o) with y = cast(x, compute(x)) {
    return adaptive_axis(y, rank(x) - len(o) + i, o[i], is_max)
  }
  return cast(y, dtype(x))
}

# The means or maxima of parts of the last axes of x, as many as `o` says for each.
def adaptive_pool(x, o, is_max) {
  even = loop i in 0:len(o) with even = true { return even && dim(x, rank(x) - len(o) + i) % o[i] == 0 }
  return adaptive_even(x, o, is_max) if even else adaptive_uneven(x, o, is_max)
}

# Means of `output_size` parts of the last axis of x: [B, C, W].
def adaptive_avg_pool1d(x, output_size) = adaptive_pool(x, each(output_size, 1), false)

# Means of parts of the last two axes of x: [B, C, H, W].
def adaptive_avg_pool2d(x, output_size) = adaptive_pool(x, each(output_size, 2), false)

# Means of parts of the last three axes of x: [B, C, D, H, W].
def adaptive_avg_pool3d(x, output_size) = adaptive_pool(x, each(output_size, 3), false)

# Maxima of `output_size` parts of the last axis of x: [B, C, W].
def adaptive_max_pool1d(x, output_size) = adaptive_pool(x, each(output_size, 1), true)

# Maxima of parts of the last two axes of x: [B, C, H, W].
def adaptive_max_pool2d(x, output_size) = adaptive_pool(x, each(output_size, 2), true)

# Maxima of parts of the last three axes of x: [B, C, D, H, W].
def adaptive_max_pool3d(x, output_size) = adaptive_pool(x, each(output_size, 3), true)

# x: [B, C, H, W] -> [B, C * taps, windows]: the windows as columns, channel by channel, then tap by tap.
def unfold(x, kernel_size, dilation=1, padding=0, stride=1) {
  t = windows(x, each(kernel_size, 2), none, stride, dilation, padding)
  n = t.shape
  return reshape(transpose(t, perm=[0, 1, 4, 5, 2, 3]), [n[0], n[1] * n[4] * n[5], n[2] * n[3]])
}

# x: [B, C * r * r, H, W] -> [B, C, H * r, W * r] for r = `upscale_factor`.
def pixel_shuffle(x, upscale_factor) {
  n = x.shape
  r = upscale_factor
  t = reshape(x, [n[0], n[1] / (r * r), r, r, n[2], n[3]])
  return reshape(transpose(t, perm=[0, 1, 4, 2, 5, 3]), [n[0], n[1] / (r * r), n[2] * r, n[3] * r])
}

# x: [B, C, H * r, W * r] -> [B, C * r * r, H, W] for r = `downscale_factor`.
def pixel_unshuffle(x, downscale_factor) {
  n = x.shape
  r = downscale_factor
  t = reshape(x, [n[0], n[1], n[2] / r, r, n[3] / r, r])
  return reshape(transpose(t, perm=[0, 1, 3, 5, 2, 4]), [n[0], n[1] * r * r, n[2] / r, n[3] / r])
}

# The sum of elements of x along an axis, at the indices `low` and behind, by weights that are functions of
# the place f between them, 0 to 1: x[low] (1 - f) + x[low + 1] f.
def interpolate_linear(x, axis, low, f) = gather(x, low, axis) * (1 - f) + gather(x, low + 1, axis) * f

# The same with the four elements from `low` - 1 on, and polynomials of degree 3.
def interpolate_cubic(x, axis, low, f) {
  g = 1 - f
  p = gather(x, low - 1, axis) * (((-0.75 * (f + 1) + 3.75) * (f + 1) - 6) * (f + 1) + 3)
  q = gather(x, low, axis) * ((1.25 * f - 2.25) * f * f + 1)
  r = gather(x, low + 1, axis) * ((1.25 * g - 2.25) * g * g + 1)
  s = gather(x, low + 2, axis) * (((-0.75 * (g + 1) + 3.75) * (g + 1) - 6) * (g + 1) + 3)
  return p + q + r + s
}

# One axis of x as m elements. Their places are fractions num / den of elements of x.
def interpolate_axis(x, axis, m, scale, is_cubic, align_corners) {
  n = dim(x, axis)
  i = iota([m])
  num = i * (n - 1) if align_corners else 2 * i + (1 - scale) if scale != none else (2 * i + 1) * n - m
  den = 2 * (m if scale == none else scale) if !align_corners else m - 1 if m > 1 else 1
  place = num if is_cubic else maximum(num, 0)
  low = (place + den) / den - 1
  f = reshape(cast(place - low * den, dtype(x)) / den, [m] + [1] * (rank(x) - axis - 1))
  return interpolate_cubic(x, axis, low, f) if is_cubic else interpolate_linear(x, axis, low, f)
}

# One axis of x as m elements, each the one of x before its place.
def interpolate_nearest(x, axis, m, scale) {
  return gather(x, iota([m]) * dim(x, axis) / m, axis) if scale == none else repeat_interleave(x, scale, axis)
}

# x: [B, C, ..] with the other axes `scale_factor` times as long, or of the extents `size`. `mode` is "nearest",
# "linear", "bilinear", "trilinear" or "bicubic". Sizes must be numbers, if there is no `scale_factor`, or with
# `align_corners`.
def interpolate(x, scale_factor=none, mode="nearest", size=none, align_corners=false) {
  is_linear = mode == "linear" || mode == "bilinear" || mode == "trilinear"
  is_cubic = mode == "bicubic"
  is_nearest = mode == "nearest"
  is_good = is_nearest || is_linear || is_cubic
  z = cast(x, compute(x)) if is_good else error("`mode` is nearest, linear, bilinear, trilinear or bicubic")
  y = loop k in 2:rank(x) with y = x if is_nearest else z {
    scale = none if scale_factor == none else each(scale_factor, rank(x) - 2)[k - 2]
    m = each(size, rank(x) - 2)[k - 2] if scale == none else dim(x, k) * scale
    along = interpolate_nearest(y, k, m, scale) if is_nearest else none
    return interpolate_axis(y, k, m, scale, is_cubic, align_corners) if along == none else along
  }
  return cast(y, dtype(x))
}

# The elements of x: [B, C, H, W] at the places py, px: i32[B, P, Q]; 0 outside.
def grid_pick(x, py, px) {
  n = x.shape
  h = extent(x, 2)
  w = extent(x, 3)
  inside = py >= 0 && py < h && px >= 0 && px < w
  plane = reshape(iota([n[0] * n[1]], dtype=i64), [n[0], n[1], 1, 1])
  row = plane * cast(h, i64) + cast(unsqueeze(minimum(maximum(py, 0), h - 1), 1), i64)
  place = row * cast(w, i64) + cast(unsqueeze(minimum(maximum(px, 0), w - 1), 1), i64)
  return where(unsqueeze(inside, 1), gather(reshape(x, [-1]), place), const(0, dtype(x)))
}

# The elements around the places py, px: [B, P, Q], by their nearness.
def grid_bilinear(x, py, px) {
  i = cast(floor(py), i32)
  j = cast(floor(px), i32)
  f = unsqueeze(py - floor(py), 1)
  g = unsqueeze(px - floor(px), 1)
  upper = grid_pick(x, i, j) * (1 - g) + grid_pick(x, i, j + 1) * g
  lower = grid_pick(x, i + 1, j) * (1 - g) + grid_pick(x, i + 1, j + 1) * g
  return upper * (1 - f) + lower * f
}

# The places that numbers from -1 to 1 stand for along an axis of n elements.
def grid_places(g, n, is_border, align_corners) {
  u = (g + 1) * 0.5 * (n - 1) if align_corners else (g + 1) * 0.5 * n - 0.5
  return minimum(maximum(u, 0), n - 1) if is_border else u
}

# x: [B, C, H, W] at the places of grid: [B, P, Q, 2], (x, y) from -1 to 1 -> [B, C, P, Q]. `mode` is "bilinear"
# or "nearest". Beyond x stand zeros, or with `padding_mode="border"` its last elements. -1 and 1 are the
# outer edges of the outer elements, or with `align_corners` their centres.
def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=false) {
  z = cast(x, compute(x))
  g = cast(grid, compute(x))
  is_border = padding_mode == "border"
  is_good = is_border || padding_mode == "zeros"
  border = is_border if is_good else error("`padding_mode` is zeros or border")
  px = grid_places(g[:, :, :, 0], cast(extent(x, 3), compute(x)), border, align_corners)
  py = grid_places(g[:, :, :, 1], cast(extent(x, 2), compute(x)), border, align_corners)
  is_near = mode == "nearest" if mode == "nearest" || mode == "bilinear" else error("`mode` is bilinear or nearest")
  y = grid_pick(z, cast(round(py), i32), cast(round(px), i32)) if is_near else grid_bilinear(z, py, px)
  return cast(y, dtype(x))
}
