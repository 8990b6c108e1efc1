# Resampling

# x: [.., C * r * r, H, W] -> [.., C, H * r, W * r] for r = `upscale_factor`.
def pixel_shuffle(x, upscale_factor) {
  r = upscale_factor
  k = rank(of_rank(x, 3, 7)) - 3
  c = dim(x, k)
  is_good = most(c % (r * r)) == 0
  front = x.shape[:k] + [c / (r * r) if is_good else error("`x` has {c} channels, no multiple of {r} * {r}")]
  t = reshape(x, front + [r, r, dim(x, -2), dim(x, -1)])
  perm = [0, 1, 2, 3, 4][:k] + [k, k + 3, k + 1, k + 4, k + 2]
  return reshape(transpose(t, perm=perm), front + [dim(x, -2) * r, dim(x, -1) * r])
}

# x: [.., C, H * r, W * r] -> [.., C * r * r, H, W] for r = `downscale_factor`.
def pixel_unshuffle(x, downscale_factor) {
  k = rank(of_rank(x, 3, 7)) - 3
  r = downscale_factor
  h = dim(x, -2)
  w = dim(x, -1)
  is_good = most(h % r) == 0 && most(w % r) == 0
  s = r if is_good else error("`x` has images of {h} x {w}, no multiples of {r}")
  t = reshape(x, x.shape[:k + 1] + [h / s, s, w / s, s])
  perm = [0, 1, 2, 3, 4][:k] + [k, k + 2, k + 4, k + 1, k + 3]
  return reshape(transpose(t, perm=perm), x.shape[:k] + [dim(x, k) * r * r, dim(x, -2) / r, dim(x, -1) / r])
}

# The sum of elements of x along an axis, at the indices `low` and behind, by weights that are functions of
# the place f between them, 0 to 1: x[low] (1 - f) + x[low + 1] f.
def interpolate_linear(x, axis, low, f) = gather(x, low, axis) * (1 - f) + gather(x, low + 1, axis) * f

# The weight of the nearer elements of a cubic interpolation, f from them, and that of the others, f + 1 from them.
def cubic_near(f) = (1.25 * f - 2.25) * f * f + 1
def cubic_far(f) = ((-0.75 * (f + 1) + 3.75) * (f + 1) - 6) * (f + 1) + 3

# The same with the four elements from `low` - 1 on, and polynomials of degree 3.
def interpolate_cubic(x, axis, low, f) {
  g = 1 - f
  p = gather(x, low - 1, axis) * cubic_far(f)
  q = gather(x, low, axis) * cubic_near(f)
  r = gather(x, low + 1, axis) * cubic_near(g)
  s = gather(x, low + 2, axis) * cubic_far(g)
  return p + q + r + s
}

# A number k from 0 on, or 1 if it is 0; of dtype t, if it is known only at run time.
def interpolate_den(k, t) = k if most(-k) < 0 else 1 if most(k) < 1 else maximum(extent(iota([k]), 0, t), 1)

# The integers of x divided by k, a number or a tensor, as dtype t.
def interpolate_fraction(x, k, t) {
  far = k if kind(k) == "tensor" else none if is_known(k) else extent(iota([k]), 0, dtype(x))
  return cast(x, t) / k if far == none else cast(x, t) / cast(far, t)
}

# One axis of x as m elements. Their places are fractions num / den of elements of x.
def interpolate_axis(x, axis, m, scale, is_cubic, align_corners) {
  n = dim(x, axis)
  t = i64 if most(m) * most(n) >= 1 << 29 else i32
  i = iota([m], dtype=t)
  num = i * (n - 1) if align_corners else 2 * i + (1 - scale) if scale != none else (2 * i + 1) * n - m
  den = interpolate_den(m - 1, t) if align_corners else 2 * (m if scale == none else scale)
  place = num if is_cubic else maximum(num, 0)
  low = (place + den) / den - 1
  f = reshape(interpolate_fraction(place - low * den, den, dtype(x)), [m] + [1] * (rank(x) - axis - 1))
  return interpolate_cubic(x, axis, low, f) if is_cubic else interpolate_linear(x, axis, low, f)
}

# The same where the places are multiples of 1 / `factor`, which is no integer. By straight lines an axis that stays as
# long as it is stays the same.
def interpolate_by(x, axis, m, factor, is_cubic) = x if !is_cubic && m == dim(x, axis) else interpolate_between(x, axis, m, factor, is_cubic)

# `interpolate_by` of an axis that becomes longer or shorter.
def interpolate_between(x, axis, m, factor, is_cubic) {
  place = (cast(iota([m]), dtype(x)) + 0.5) * (1.0 / factor) - 0.5
  above = place if is_cubic else maximum(place, 0)
  low = cast(floor(above), i32)
  f = reshape(above - floor(above), [m] + [1] * (rank(x) - axis - 1))
  return interpolate_cubic(x, axis, low, f) if is_cubic else interpolate_linear(x, axis, low, f)
}

# One axis of x as m elements, each the one of x before its place.
def interpolate_nearest(x, axis, m, scale) {
  n = dim(x, axis)
  return gather(x, iota([m], dtype=place_type(n * m)) * n / m, axis) if scale == none else repeat_interleave(x, scale, axis)
}

# The same where the places are multiples of 1 / `factor`, which is no integer, or with `is_exact` half of that more.
# Without it, as in PyTorch, an axis of [B, C, H, W] that stays as long as it is stays the same, and elements of one that
# is twice as long stand twice.
def interpolate_nearest_by(x, axis, m, factor, is_exact) {
  is_simple = !is_exact && rank(x) == 4 && (m == dim(x, axis) || m == 2 * dim(x, axis))
  return repeat_interleave(x, m / dim(x, axis), axis) if is_simple else interpolate_nearest_places(x, axis, m, factor, is_exact)
}

# `interpolate_nearest_by` of any number of elements.
def interpolate_nearest_places(x, axis, m, factor, is_exact) {
  i = cast(iota([m]), f32)
  return gather(x, cast(floor((i + 0.5 if is_exact else i) * (1.0 / factor)), i32), axis)
}

# One axis of x as m elements, each the one of x in which the middle of its place lies.
def interpolate_nearest_exact(x, axis, m, scale) {
  n = dim(x, axis)
  at = (2 * iota([m], dtype=place_type(2 * n * m)) + 1) * n / (2 * m) if scale == none else none
  return repeat_interleave(x, scale, axis) if at == none else gather(x, at, axis)
}

# The largest integer that is not above x, a number from 0 to 2^31.
def whole(x) = loop k in 0:31 with n = 0 { return n + (1 << 30 - k) if n + (1 << 30 - k) <= x else n }

# One axis of x as m elements. `factor`: how many times as long it is, if that is no integer; `scale`: if it is one.
def interpolate_along(x, axis, m, scale, factor, mode, align_corners) {
  is_near = mode == "nearest"
  is_exact = mode == "nearest-exact"
  is_cubic = mode == "bicubic"
  near = interpolate_nearest(x, axis, m, scale) if is_near && factor == none else none
  exact = interpolate_nearest_exact(x, axis, m, scale) if is_exact && factor == none else near
  by = interpolate_nearest_by(x, axis, m, factor, is_exact) if (is_near || is_exact) && factor != none else exact
  smooth = interpolate_by(x, axis, m, factor, is_cubic) if by == none && factor != none else by
  return interpolate_axis(x, axis, m, scale, is_cubic, align_corners) if smooth == none else smooth
}

# How long an axis of n elements becomes by a factor that is no integer. n must be a number.
def scaled_extent(n, factor, axis) {
  m = n if is_known(n) else error("axis {axis} has {n} elements, known at run time: give `size`, or an integer as `scale_factor`")
  return whole(m * factor)
}

# x: [B, C, ..] with the other axes `scale_factor` times as long, or of the extents `size`. `mode` is "nearest",
# "nearest-exact", "bicubic", "area", or "linear", "bilinear" or "trilinear" of one, two or three axes. A `scale_factor`
# that is no integer is of axes whose extents are numbers. With `recompute_scale_factor` places follow from the sizes in
# place of such a factor.
def interpolate(x, scale_factor=none, mode="nearest", size=none, align_corners=false, recompute_scale_factor=false) {
  is_linear = mode == "linear" || mode == "bilinear" || mode == "trilinear"
  is_nearest = mode == "nearest" || mode == "nearest-exact"
  is_good = is_nearest || is_linear || mode == "bicubic" || mode == "area"
  wrong = "`mode` is nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area"
  n = 3 if mode == "linear" else 4 if mode == "bilinear" || mode == "bicubic" else 5 if mode == "trilinear" else 0
  has_ends = !align_corners || is_linear || mode == "bicubic"
  is_one = (scale_factor == none) != (size == none)
  image = of_rank(x, n, n) if n > 0 else of_rank(x, 3, 16) if is_good else error(wrong)
  given_image = image if has_ends else error("`align_corners` is for linear and cubic modes, not {mode}")
  z = cast(given_image if is_one else error("give either `size` or `scale_factor`"), compute(x))
  is_area = mode == "area"
  y, is_plain, sizes = loop k in 2:rank(z) with y = x if is_nearest || is_area else z, is_plain = true, sizes = [] {
    given = none if scale_factor == none else each(scale_factor, rank(x) - 2)[k - 2]
    is_integer = kind(given) == "integer"
    scale = given if is_integer || given == none else whole(given) if whole(given) == given else none
    n = dim(x, k)
    m = each(size, rank(x) - 2)[k - 2] if given == none else n * scale if scale != none else scaled_extent(n, given, k)
    factor = none if scale != none || align_corners || recompute_scale_factor else given
    along = none if is_area else interpolate_along(y, k, m, scale, factor, mode, align_corners)
    wide = y if is_area && scale == none else repeat_interleave(y, scale, axis=k) if is_area else along
    return wide, is_plain && (!is_area || scale != none), sizes + [m]
  }
  return cast(y, dtype(x)) if is_plain else adaptive_pool(y, sizes, false)
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

# Places u along an axis of n elements, as places inside: those beyond it are mirrored at its ends, at the centres of the
# outer elements with `align_corners`, else at their edges.
def grid_mirrored(u, n, align_corners) {
  low = 0.0 if align_corners else -0.5
  span = n - 1 if align_corners else n
  far = abs(u - low)
  turns = floor(far / span)
  is_even = turns - 2 * floor(turns * 0.5) == 0
  y = where(is_even, far % span, span - far % span) + low
  return where(span == 0, 0.0, minimum(maximum(y, 0), n - 1))
}

# Places along an axis of n elements, as `padding_mode` says of those beyond it.
def grid_inside(u, n, padding_mode, align_corners) {
  mirrored = grid_mirrored(u, n, align_corners) if padding_mode == "reflection" else none
  return minimum(maximum(u, 0), n - 1) if padding_mode == "border" else u if mirrored == none else mirrored
}

# The places that numbers from -1 to 1 stand for along an axis of n elements.
def grid_places(g, n, align_corners) {
  return (g + 1) * 0.5 * (n - 1) if align_corners else (g + 1) * 0.5 * n - 0.5
}

# The four elements around each place, in either direction, by polynomials of degree 3. What lies beyond x is found for
# each element.
def grid_bicubic(x, py, px, h, w, padding_mode, align_corners) {
  f = py - floor(py)
  g = px - floor(px)
  by_row = [cubic_far(f), cubic_near(f), cubic_near(1 - f), cubic_far(1 - f)]
  by_column = [cubic_far(g), cubic_near(g), cubic_near(1 - g), cubic_far(1 - g)]
  return loop k in 0:16 with y = none {
    i = cast(grid_inside(floor(py) + [-1, 0, 1, 2][k / 4], h, padding_mode, align_corners), i32)
    j = cast(grid_inside(floor(px) + [-1, 0, 1, 2][k % 4], w, padding_mode, align_corners), i32)
    part = grid_pick(x, i, j) * unsqueeze(by_row[k / 4] * by_column[k % 4], 1)
    return part if y == none else y + part
  }
}

# x: [B, C, H, W] at the places of grid: [B, P, Q, 2], (x, y) from -1 to 1 -> [B, C, P, Q]. `mode` is "bilinear",
# "nearest" or "bicubic". Beyond x stand zeros, or with `padding_mode="border"` its last elements, or with
# "reflection" its elements mirrored. -1 and 1 are the outer edges of the outer elements, or with `align_corners`
# their centres.
def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=false) {
  image = of_rank(x, 4, 4)
  z = cast(image, compute(x))
  own = of_rank(grid, 4, 4, "grid").shape
  is_grid = is_same_shape(own[:1] + own[3:], image.shape[:1] + [2])
  g = cast(grid if is_grid else error("`grid` must have the shape [B, P, Q, 2] for `x` of [B, C, H, W]"), compute(x))
  is_good = padding_mode == "border" || padding_mode == "zeros" || padding_mode == "reflection"
  around = padding_mode if is_good else error("`padding_mode` is zeros, border or reflection")
  is_cubic = mode == "bicubic"
  is_known = mode == "nearest" || mode == "bilinear" || is_cubic
  is_near = mode == "nearest" if is_known else error("`mode` is bilinear, nearest or bicubic")
  u = grid_places(g[:, :, :, 0], cast(extent(image, 3), compute(x)), align_corners)
  w = cast(extent(image, 3), compute(x))
  px = u if is_cubic else grid_inside(u, w, around, align_corners)
  v = grid_places(g[:, :, :, 1], cast(extent(image, 2), compute(x)), align_corners)
  h = cast(extent(image, 2), compute(x))
  py = v if is_cubic else grid_inside(v, h, around, align_corners)
  cubic = grid_bicubic(z, py, px, h, w, around, align_corners) if is_cubic else none
  near = grid_pick(z, cast(round(py), i32), cast(round(px), i32)) if is_near else cubic
  return cast(grid_bilinear(z, py, px) if near == none else near, dtype(x))
}
