# Convolutions
#
# An image without the axis of the batch, B, gives a result without it.

# x with an axis of the batch in front, if its rank is `n` - 1.
def batched(x, n) = x if rank(x) == n else unsqueeze(of_rank(x, n - 1, n), 0)

# What `batched` added, taken from the result y.
def unbatched(y, x, n) = y if rank(x) == n else reshape(y, y.shape[1:])

# The sum over taps and channels, in this order, that all convolutions are.
# t: [B, D, H, W, T, G, c], weight: [T * c, G * m] -> [B, D, H, W, G * m]
def conv_taps(t, weight, bias, out=dtype(t)) {
  n = t.shape
  k = dim(weight, 0)
  m = dim(weight, 1) / n[5]
  rows = reshape(transpose(t, perm=[5, 0, 1, 2, 3, 4, 6]), [n[5], n[0], n[1], n[2], n[3], k])
  columns = reshape(transpose(reshape(weight, [k, n[5], m]), perm=[1, 0, 2]), [n[5], 1, 1, 1, k, m])
  y = transpose(matmul(rows, columns, out=out), perm=[1, 2, 3, 4, 0, 5])
  return biased(reshape(y, [n[0], n[1], n[2], n[3], dim(weight, 1)]), for_filters(bias, dim(weight, 1)))
}

# `size`, of windows along the axes of x from `first` on. Windows that are larger than x with its padding are an error.
def fitting(size, x, first, padding, dilation, name) {
  is_word = kind(padding) == "string"
  pads = 0 if is_word else padding
  is_fixed = padding == "valid" if is_word else true
  return loop k in 0:(len(size) if is_fixed else 0) with good = size {
    reach = each(dilation, len(size))[k] * (size[k] - 1) + 1
    n = dim(x, first + k) + 2 * each(pads, len(size))[k]
    is_good = most(reach - n) <= 0
    return good if is_good else error("`{name}` reaches over {reach} elements, and `x` with its padding has {n}: give more `padding`, or smaller windows")
  }
}

# `weight` of rank n: [.., C / groups, N]. C are the channels of x, its last axis.
def of_channels_last(weight, x, groups, n) {
  c = dim(x, -1)
  k = dim(of_rank(weight, n, n, "weight"), -2)
  m = dim(weight, -1)
  is_good = most(c - k * groups) == 0 && most(k * groups - c) == 0
  w = weight if is_good else error("`x` has {c} channels, and `weight` takes {k} for each of {groups} `groups`")
  return w if most(m % groups) == 0 else error("`weight` has {m} filters, which is no multiple of {groups} `groups`")
}

# A bias for n filters: as many numbers, or one number, or none.
def for_filters(bias, n) {
  is_good = rank(bias) == 0 || is_same_shape(bias.shape, [n]) if kind(bias) == "tensor" else true
  return bias if is_good else error("`bias` must have the shape [{n}], one number for each filter")
}

# x + bias, if there is one.
def biased(x, bias) = x if bias == none else x + bias

# x: [B, W, C], weight: [k, C / groups, N] -> [B, windows, N]. `bias` is [N], a number or none.
def conv1d_nwc(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  image = batched(x, 3)
  k = of_channels_last(weight, image, groups, 3).shape
  n = windows(image, size=fitting([k[0]], image, 1, padding, dilation, "weight"), axis=[1], stride=stride, padding=padding, dilation=dilation)
  t = reshape(n, [dim(n, 0), 1, 1, dim(n, 1), k[0], groups, k[1]])
  y = conv_taps(t, reshape(weight, [k[0] * k[1], k[2]]), bias, out)
  return unbatched(y[:, 0, 0], x, 3)
}

# x: [B, H, W, C], weight: [k, l, C / groups, N] -> [B, windows.., N]. `bias` is [N], a number or none.
def conv2d_nhwc(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  image = batched(x, 4)
  k = of_channels_last(weight, image, groups, 4).shape
  n = windows(image, size=fitting([k[0], k[1]], image, 1, padding, dilation, "weight"), axis=[1, 2], stride=stride, padding=padding, dilation=dilation)
  t = reshape(n, [dim(n, 0), 1, dim(n, 1), dim(n, 2), k[0] * k[1], groups, k[2]])
  y = conv_taps(t, reshape(weight, [k[0] * k[1] * k[2], k[3]]), bias, out)
  return unbatched(y[:, 0], x, 4)
}

# x: [B, D, H, W, C], weight: [k, l, m, C / groups, N] -> [B, windows.., N]. `bias` is [N], a number or none.
def conv3d_ndhwc(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  image = batched(x, 5)
  k = of_channels_last(weight, image, groups, 5).shape
  size = fitting([k[0], k[1], k[2]], image, 1, padding, dilation, "weight")
  n = windows(image, size=size, axis=[1, 2, 3], stride=stride, padding=padding, dilation=dilation)
  t = reshape(n, [dim(n, 0), dim(n, 1), dim(n, 2), dim(n, 3), k[0] * k[1] * k[2], groups, k[3]])
  return unbatched(conv_taps(t, reshape(weight, [k[0] * k[1] * k[2] * k[3], k[4]]), bias, out), x, 5)
}

# x: [B, C, W], weight: [N, C / groups, k] -> [B, N, windows]. `padding` is numbers, "same" or "causal".
def conv1d(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  w = transpose(of_rank(weight, 3, 3, "weight"), perm=[2, 1, 0])
  y = conv1d_nwc(transpose(batched(x, 3), perm=[0, 2, 1]), w, bias, stride, padding, dilation, groups, out)
  return unbatched(transpose(y, perm=[0, 2, 1]), x, 3)
}

# x: [B, C, H, W], weight: [N, C / groups, k, l] -> [B, N, windows..]. `padding` is numbers or "same".
def conv2d(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  w = transpose(of_rank(weight, 4, 4, "weight"), perm=[2, 3, 1, 0])
  y = conv2d_nhwc(transpose(batched(x, 4), perm=[0, 2, 3, 1]), w, bias, stride, padding, dilation, groups, out)
  return unbatched(transpose(y, perm=[0, 3, 1, 2]), x, 4)
}

# x: [B, C, D, H, W], weight: [N, C / groups, k, l, m] -> [B, N, windows..].
def conv3d(x, weight, bias=-0.0, stride=1, padding=0, dilation=1, groups=1, out=dtype(x)) {
  w = transpose(of_rank(weight, 5, 5, "weight"), perm=[2, 3, 4, 1, 0])
  y = conv3d_ndhwc(transpose(batched(x, 5), perm=[0, 2, 3, 4, 1]), w, bias, stride, padding, dilation, groups, out)
  return unbatched(transpose(y, perm=[0, 4, 1, 2, 3]), x, 5)
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

# The largest number that divides both.
def common_divisor(a, b) {
  g = loop i in 1:a + 1 with g = 1 { return i if a % i == 0 && b % i == 0 else g }
  return g
}

# Phase j of a stride s begins d * j results late, so it is a result of phase d * j % s, and d * j / s windows late.
# Axis `w` of y has the windows, and axis `p` the s phases in the order of j. The result has more windows, and the
# phases in the order of their results.
def conv_transpose_delay(y, w, p, s, d) {
  most = d * (s - 1) / s
  inverse = loop i in 0:s with inverse = 0 { return i if d * i % s == 1 % s else inverse }
  zeros = [0] * w + [most] + [0] * (rank(y) - w - 1)
  parts = split(pad(y, low=zeros, high=zeros), s, axis=p)
  shape = y.shape[:w] + [dim(y, w) + most] + y.shape[w + 1:p] + [1] + y.shape[p + 1:]
  phases = loop r in 0:s {
    j = r * inverse % s
    return slice(parts[j], begin=[0] * w + [most - d * j / s] + [0] * (rank(y) - w - 1), shape=shape)
  }
  return concat(phases, axis=p)
}

# The same for the axes of a result of the phases, [B, D, H, W, groups * s * .. * m].
def conv_transpose_delays(y, s, d, groups) {
  n = y.shape
  phases = reshape(y, n[:4] + [groups] + s + [n[4] / (groups * s[0] * s[1] * s[2])])
  z = loop i in 0:3 with z = phases {
    return conv_transpose_delay(z, 1 + i, 5 + i, s[i], d[i]) if s[i] > 1 && d[i] > 1 else z
  }
  return reshape(z, z.shape[:4] + [n[4]])
}

# How one axis of a transposed convolution of k taps, stride s and dilation d becomes phases: their number, the distance
# between taps of a filter of all phases, the taps of a phase, and the distance between these. A phase has every s-th
# tap and is late; or taps have zeros between them, where phases then have no more taps.
def conv_transpose_plan(k, s, d) {
  dense = (d * (k - 1) + s) / s
  own = (k + s - 1) / s
  apart = d if s > 1 && dense == own else 1
  return [s, apart, dense if apart > 1 else own, d / apart]
}

# A transposed convolution of a stride. No product has a factor that lies between elements of the image. If the stride
# and the dilation have a common divisor g, all results but one in g are zeros: these have no product at all. One tap
# may have any dilation, so also the stride.
def conv_transpose_strided(x, weight, bias, s, p, o, groups, d, out) {
  n = x.shape
  k = [dim(weight, 2), dim(weight, 3), dim(weight, 4)]
  f = [d[0] if k[0] > 1 else s[0], d[1] if k[1] > 1 else s[1], d[2] if k[2] > 1 else s[2]]
  g = [common_divisor(s[0], f[0]), common_divisor(s[1], f[1]), common_divisor(s[2], f[2])]
  r, q, t, e = loop i in 0:3 with r = [], q = [], t = [], e = [] {
    phases, apart, taps, own = conv_transpose_plan(k[i], s[i] / g[i], f[i] / g[i])
    return r + [phases], q + [apart], t + [taps], e + [own]
  }
  w = pad(weight, low=[0, 0, 0, 0, 0], interior=[0, 0, q[0] - 1, q[1] - 1, q[2] - 1],
          high=[0, 0, t[0] * r[0] - q[0] * (k[0] - 1) - 1, t[1] * r[1] - q[1] * (k[1] - 1) - 1,
                t[2] * r[2] - q[2] * (k[2] - 1) - 1])
  a = [e[0] * (t[0] - 1), e[1] * (t[1] - 1), e[2] * (t[2] - 1)]
  z = pad(transpose(x, perm=[0, 2, 3, 4, 1]), low=[0, a[0], a[1], a[2], 0], high=[0, a[0], a[1], a[2], 0])
  y = conv3d_ndhwc(z, conv_transpose_phases(w, t, r, groups), dilation=e, groups=groups, out=out)
  is_late = r[0] > 1 && e[0] > 1 || r[1] > 1 && e[1] > 1 || r[2] > 1 && e[2] > 1
  phases = conv_transpose_delays(y, r, e, groups) if is_late else y
  all = pad(conv_transpose_shuffle(phases, r, groups), low=[0, 0, 0, 0, 0], high=[0, o[0], o[1], o[2], 0],
            interior=[0, g[0] - 1, g[1] - 1, g[2] - 1, 0])
  m = [(n[2] - 1) * s[0] + d[0] * (k[0] - 1) + 1 + o[0] - p[0], (n[3] - 1) * s[1] + d[1] * (k[1] - 1) + 1 + o[1] - p[1],
       (n[4] - 1) * s[2] + d[2] * (k[2] - 1) + 1 + o[2] - p[2]]
  return transpose(biased(all[:, p[0]:m[0], p[1]:m[1], p[2]:m[2]], for_filters(bias, groups * dim(weight, 1))), perm=[0, 4, 1, 2, 3])
}

# A transposed convolution of one tap: a product of the channels of each element, with zeros between the results.
def conv_transpose_pointwise(x, weight, bias, s, p, o, groups, out) {
  n = x.shape
  m = dim(weight, 1)
  w = transpose(reshape(weight, [groups, n[1] / groups, m]), perm=[0, 2, 1])
  y = matmul(w, reshape(x, [n[0], groups, n[1] / groups, n[2] * n[3] * n[4]]), out=out)
  all = pad(reshape(y, [n[0], groups * m, n[2], n[3], n[4]]), low=[0, 0, 0, 0, 0], high=[0, 0, o[0], o[1], o[2]],
            interior=[0, 0, s[0] - 1, s[1] - 1, s[2] - 1])
  e = [(n[2] - 1) * s[0] + 1 + o[0] - p[0], (n[3] - 1) * s[1] + 1 + o[1] - p[1], (n[4] - 1) * s[2] + 1 + o[2] - p[2]]
  b = for_filters(bias, groups * m)
  r = rank(b) if kind(b) == "tensor" else 0
  each_bias = reshape(b, [groups * m, 1, 1, 1]) if r == 1 else b
  return biased(all[:, :, p[0]:e[0], p[1]:e[1], p[2]:e[2]], each_bias)
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

# x: [B, C, ..], whose channels are those of the weights [C, N / groups, ..].
def for_weights(x, weight, groups) {
  c = dim(x, 1)
  k = dim(weight, 0)
  is_good = most(c - k) == 0 && most(k - c) == 0
  image = x if is_good else error("`x` has {c} channels, and `weight` takes {k}")
  return image if most(c % groups) == 0 else error("`x` has {c} channels, which is no multiple of {groups} `groups`")
}

# x: [B, C, D, H, W], weight: [C, N / groups, k, l, m] -> [B, N, ..]: conv3d's transpose as a linear map.
def conv_transpose3d(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  s = each(stride, 3)
  p = each(padding, 3)
  o = each(output_padding, 3)
  d = each(dilation, 3)
  is_good = loop k in 0:3 with is_good = true { return is_good && (most(o[k]) < s[k] || most(o[k]) < most(d[k])) }
  w = of_rank(weight, 5, 5, "weight")
  z = for_weights(batched(x, 5), w, groups) if is_good else error("`output_padding` must be less than `stride` or `dilation`")
  is_dense = s[0] * s[1] * s[2] == 1
  is_single = is_same_shape(w.shape[2:], [1, 1, 1])
  single = conv_transpose_pointwise(z, w, bias, s, p, o, groups, out) if is_single else none
  dense = conv_transpose_dense(z, w, bias, p, o, groups, d, out) if is_dense && !is_single else none
  y = conv_transpose_strided(z, w, bias, s, p, o, groups, d, out) if !is_dense && !is_single else dense
  return unbatched(single if is_single else y, x, 5)
}

# x: [B, C, H, W], weight: [C, N / groups, k, l] -> [B, N, ..]: conv2d's transpose as a linear map.
def conv_transpose2d(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  s = each(stride, 2)
  p = each(padding, 2)
  o = each(output_padding, 2)
  d = each(dilation, 2)
  own = of_rank(weight, 4, 4, "weight")
  k = own.shape
  n = for_weights(batched(x, 4), own, groups).shape
  z = reshape(x, [n[0], n[1], 1, n[2], n[3]])
  w = reshape(weight, [k[0], k[1], 1, k[2], k[3]])
  y = conv_transpose3d(z, w, bias, [1, s[0], s[1]], [0, p[0], p[1]], [0, o[0], o[1]], groups, [1, d[0], d[1]], out)
  return unbatched(y[:, :, 0], x, 4)
}

# x: [B, C, W], weight: [C, N / groups, k] -> [B, N, ..]: conv1d's transpose as a linear map.
def conv_transpose1d(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  own = of_rank(weight, 3, 3, "weight")
  k = own.shape
  n = for_weights(batched(x, 3), own, groups).shape
  z = reshape(x, [n[0], n[1], 1, n[2]])
  w = reshape(weight, [k[0], k[1], 1, k[2]])
  y = conv_transpose2d(z, w, bias, [1, each(stride, 1)[0]], [0, each(padding, 1)[0]],
                       [0, each(output_padding, 1)[0]], groups, [1, each(dilation, 1)[0]], out)
  return unbatched(y[:, :, 0], x, 3)
}

# x: [B, .., C] or [.., C] of n axes beside B and C, with C before these.
def channels_first(x, n) {
  r = rank(of_rank(x, n + 1, n + 2))
  return transpose(x, perm=[0, 1, 2, 3, 4][:r - n - 1] + [r - 1] + [0, 1, 2, 3, 4][r - n - 1:r - 1])
}

# The opposite.
def channels_last(x, n) {
  r = rank(x)
  return transpose(x, perm=[0, 1, 2, 3, 4][:r - n - 1] + [0, 1, 2, 3, 4][r - n:r] + [r - n - 1])
}

# x: [B, W, C], weight: [k, N / groups, C] -> [B, .., N]: conv1d_nwc's transpose as a linear map.
def conv_transpose1d_nwc(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  w = transpose(of_rank(weight, 3, 3, "weight"), perm=[2, 1, 0])
  y = conv_transpose1d(channels_first(x, 1), w, bias, stride, padding, output_padding, groups, dilation, out)
  return channels_last(y, 1)
}

# x: [B, H, W, C], weight: [k, l, N / groups, C] -> [B, .., N]: conv2d_nhwc's transpose as a linear map.
def conv_transpose2d_nhwc(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  w = transpose(of_rank(weight, 4, 4, "weight"), perm=[3, 2, 0, 1])
  y = conv_transpose2d(channels_first(x, 2), w, bias, stride, padding, output_padding, groups, dilation, out)
  return channels_last(y, 2)
}

# x: [B, D, H, W, C], weight: [k, l, m, N / groups, C] -> [B, .., N]: conv3d_ndhwc's transpose as a linear map.
def conv_transpose3d_ndhwc(x, weight, bias=-0.0, stride=1, padding=0, output_padding=0, groups=1, dilation=1, out=dtype(x)) {
  w = transpose(of_rank(weight, 5, 5, "weight"), perm=[4, 3, 0, 1, 2])
  y = conv_transpose3d(channels_first(x, 3), w, bias, stride, padding, output_padding, groups, dilation, out)
  return channels_last(y, 3)
}

# x: [B, C, H, W] -> [B, C * taps, windows]: the windows as columns, channel by channel, then tap by tap.
def unfold(x, kernel_size, dilation=1, padding=0, stride=1) {
  t = windows(batched(x, 4), each(kernel_size, 2), none, stride, dilation, padding)
  n = t.shape
  y = reshape(transpose(t, perm=[0, 1, 4, 5, 2, 3]), [n[0], n[1] * n[4] * n[5], n[2] * n[3]])
  return unbatched(y, x, 4)
}
