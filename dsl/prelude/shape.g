# Shapes and parts

# The number of an axis from 0 on, of a tensor of rank `n`. Another is an error.
def axis_of(axis, n) {
  k = axis if kind(axis) == "integer" else error("`axis` must be the number of an axis")
  return (k + n) % n if -n <= k && k < n else error("axis {axis} is out of range for rank {n}")
}

# `x`, an argument of this name, whose rank is from `least` to `highest`. Another is an error.
def of_rank(x, least, highest, name="x") {
  n = rank(x)
  is_good = least <= n && n <= highest
  return x if is_good else (error("the rank of `{name}` must be {least}, not {n}") if least == highest
                            else error("the rank of `{name}` must be {least} to {highest}, not {n}"))
}

# Whether an integer is known while compiling.
def is_known(n) = most(n) == -most(-n)

# Whether two shapes are the same.
def is_same_shape(a, b) {
  is_like = len(a) == len(b)
  return loop k in 0:(len(a) if is_like else 0) with is_same = is_like { return a[k] == b[k] if is_same else false }
}

# `x`, a tensor of integers or bools that an error calls by this name. Another is an error.
def whole_numbers(x, name="indices") {
  is_f8 = dtype(x) == f8e4m3 || dtype(x) == f8e5m2
  return x if !is_float(x) && !is_f8 else error("{name} must be integers, not floats")
}

# `x`, a tensor of i32 or i64 that an error calls by this name. Another is an error.
def index_numbers(x, name="indices") = x if dtype(x) == i32 || dtype(x) == i64 else refused_numbers(whole_numbers(x, name), name)
# Other integers are an error.
def refused_numbers(x, name) = error("{name} must be i32 or i64: write cast(.., i32)")

# `index`, integers with an axis for each of x. Another is an error.
def places_beside(index, x) {
  n = rank(x)
  m = rank(index)
  is_good = n == m
  return index_numbers(index, "`index`") if is_good else error("the rank of `index` must be {n}, as of `x`, not {m}")
}

# Takes the axis, or each axis of a list, away if its extent is 1; without `axis` all whose extent is the number 1.
def squeeze(x, axis=none) {
  shape = loop k in 0:rank(x) with shape = [] {
    is_named = true if axis == none else is_among_axes(k, axis, rank(x))
    is_one = most(dim(x, k)) == 1 if axis == none else dim(x, k) == 1 if is_named else false
    return shape if is_one else shape + [dim(x, k)]
  }
  return reshape(x, shape)
}

# Whether axis `k` of `rank` is the axis, or one of a list.
def is_among_axes(k, axis, rank) {
  axes = axis if is_list(axis) else [axis]
  return loop i in 0:len(axes) with found = false { return found || axis_of(axes[i], rank) == k }
}

# Adds an axis of extent 1 before axis `axis`; -1 adds it behind the last.
def unsqueeze(x, axis) {
  k = axis_of(axis, rank(x) + 1)
  return reshape(x, x.shape[:k] + [1] + x.shape[k:])
}

# Tensors of one shape, a list of them, side by side along a new axis. Of what a loop of a dim of steps has collected, which is one tensor, the axis of the steps becomes the new axis.
def stack(xs, axis=0) = stack_list(xs, axis) if is_list(xs) else stack_steps(xs, axis)
# `stack` of a list.
def stack_list(xs, axis) {
  ys = loop k in 0:len(xs) { return unsqueeze(xs[k], axis) }
  return concat(ys, axis)
}
# `stack` of one tensor: its first axis becomes axis `axis`.
def stack_steps(x, axis) {
  k = axis_of(axis, rank(x))
  before = loop i in 0:k { return i + 1 }
  after = loop i in k + 1:rank(x) { return i }
  return transpose(x, perm=before + [0] + after)
}

# Makes the axes from `start_dim` to `end_dim` one. A tensor without axes becomes a vector.
def flatten(x, start_dim=0, end_dim=-1) = flatten_axes(x if rank(x) > 0 else reshape(x, [1]), start_dim, end_dim)

# `flatten` of a tensor with axes.
def flatten_axes(x, start_dim, end_dim) {
  a = axis_of(start_dim, rank(x))
  b = axis_of(end_dim, rank(x))
  end = b + 1 if a <= b else error("axis {b}, `end_dim`, stands before axis {a}, `start_dim`")
  return reshape(x, x.shape[:a] + [-1] + x.shape[end:])
}

# The axis, or each axis of a list, in the opposite order.
def flip(x, axis) {
  axes = axis if is_list(axis) else [axis]
  y = loop i in 0:len(axes) with y = x { return flip_one(y, axes[i]) }
  return y
}

# One axis in the opposite order.
def flip_one(x, axis) {
  k = axis_of(axis, rank(x))
  n = rank(x) - k - 1
  return slice(x, begin=[0] * k + [dim(x, k) - 1] + [0] * n, shape=x.shape,
               step=[1] * k + [-1] + [1] * n)
}

# Each slice of the axis `repeats` times, one behind the other; without `axis` each element, as a vector. `repeats` may be
# a list of a number for each slice.
def repeat_interleave(x, repeats, axis=none) {
  z = reshape(x, [-1]) if axis == none else x
  k = 0 if axis == none else axis_of(axis, rank(z))
  return repeat_slices(z, repeats, k) if is_list(repeats) else repeat_evenly(z, repeats, k)
}

# `repeat_interleave` along an axis by a list.
def repeat_slices(z, repeats, k) {
  n = dim(z, k)
  is_good = len(repeats) == n
  counts = repeats if is_good else error("`repeats` must have {n} numbers, one for each slice")
  parts = loop i in 0:len(counts) with parts = [] { return parts + ([repeat_slice(z, counts[i], k, i)] if counts[i] > 0 else []) }
  return concat(parts, axis=k)
}

# Slice i of the axis, several times.
def repeat_slice(z, count, k, i) {
  one = slice(z, begin=[0] * k + [i] + [0] * (rank(z) - k - 1), shape=z.shape[:k] + [1] + z.shape[k + 1:])
  return expand(one, z.shape[:k] + [count] + z.shape[k + 1:])
}

# `repeat_interleave` along an axis by one number.
def repeat_evenly(z, repeats, k) {
  front = z.shape[:k + 1]
  back = z.shape[k + 1:]
  wide = expand(reshape(z, front + [1] + back), front + [repeats] + back)
  return reshape(wide, z.shape[:k] + [dim(z, k) * repeats] + back)
}

# The whole tensor `repeats` times along each axis, a number for each; more numbers than axes add axes in front.
def repeat(x, repeats) {
  n = rank(x)
  is_good = len(repeats) >= n if is_list(repeats) else false
  counts = repeats if is_good else error("`repeats` must have a number for each of the {n} axes of `x`; `tile` takes fewer")
  y = loop k in 0:len(counts) with y = reshape(x, [1] * (len(counts) - rank(x)) + x.shape) {
    n = y.shape
    wide = expand(reshape(y, n[:k] + [1] + n[k:]), n[:k] + [counts[k]] + n[k:])
    return reshape(wide, n[:k] + [counts[k] * n[k]] + n[k + 1:])
  }
  return y
}

# `repeat` where `dims` may have fewer numbers than x axes: they are those of the last axes.
def tile(x, dims) {
  n = dims if is_list(dims) else [dims]
  return repeat(x, n if len(n) >= rank(x) else [1] * (rank(x) - len(n)) + n)
}

# The lower triangle of the last two axes, up to the diagonal with this number; 0 elsewhere.
def tril(x, diagonal=0) {
  row = iota(x.shape, axis=-2)
  return where(iota(x.shape, axis=-1) <= row + diagonal, x, const(0, dtype(x)))
}

# The upper triangle of the last two axes, from the diagonal with this number; 0 elsewhere.
def triu(x, diagonal=0) {
  row = iota(x.shape, axis=-2)
  return where(iota(x.shape, axis=-1) >= row + diagonal, x, const(0, dtype(x)))
}

# The matrix with the vector x on the diagonal with this number, or that diagonal of the matrix x.
def diag(x, diagonal=0) = diag_of_matrix(x, diagonal) if rank(x) == 2 else diag_of_vector(of_rank(x, 1, 2), diagonal)

# A diagonal of a matrix. How long it is must be known while compiling, unless the matrix is square.
def diag_of_matrix(x, diagonal) {
  cut = x[-diagonal:] if diagonal < 0 else x[:, diagonal:] if diagonal > 0 else x
  n = dim(cut, 0) if diagonal != 0 || dim(x, 0) != dim(x, 1) else none
  m = none if n == none else dim(cut, 1)
  square = cut if n == none else cut[:, :n] if n <= m else cut[:m]
  return einsum("ii->i", square)
}

# The matrix with x on a diagonal, 0 elsewhere.
def diag_of_vector(x, diagonal) {
  below = -diagonal if diagonal < 0 else 0
  right = diagonal if diagonal > 0 else 0
  n = dim(x, 0) + below + right
  on = iota([n, n], axis=0) == (iota([n, n], axis=1) if diagonal == 0 else iota([n, n], axis=1) - diagonal)
  row = x if diagonal == 0 else pad(x, low=[right], high=[below])
  return where(on, row, const(0, dtype(x)))
}

# The sum of the diagonal of the square matrix x.
def trace(x) = einsum("ii", x)

# A tensor of one number, f32, or bool of true or false, if no dtype is given.
def full(shape, value, dtype=none) {
  usual = bool if kind(value) == "bool" else f32
  return expand(const(value, usual if dtype == none else dtype), shape)
}

def zeros(shape, dtype=f32) = expand(const(0, dtype if is_list(shape) else error("`shape` must be a list, such as [2, 3]")), shape)

def ones(shape, dtype=f32) = expand(const(1, dtype if is_list(shape) else error("`shape` must be a list, such as [2, 3]")), shape)

# The integers from `start` to before `end`, `step` apart, i32; of one number those from 0 to before it. A dtype may stand
# in place of `end`. Where one of the three is no integer, f32 multiples of `step` behind `start`, rounded once.
def arange(start=none, end=none, step=1, dtype=none) {
  has_begin = start != none && end != none && kind(end) != "dtype"
  last = end if has_begin || start == none else start
  stop = last if last != none else error("`arange` needs an end, as in arange(8)")
  is_integer = kind(stop) != "float" && kind(start) != "float" && kind(step) != "float"
  given = end if kind(end) == "dtype" else dtype
  of = given if given != none else i32 if is_integer else f32
  plain = cast(iota([stop], dtype=place_type(stop)), of) if is_integer && !has_begin else none
  floats = none if is_integer else arange_of_floats(start if has_begin else 0, stop, step, of)
  return arange_from(start, end, step, of) if plain == none && is_integer else floats if plain == none else plain
}

# `arange` of numbers that are no integers.
def arange_of_floats(start, end, step, dtype) {
  span = (1.0 * end - start) / (step if step != 0 else error("`step` is 0"))
  n = whole(span) if span >= 0 else error("`end` lies behind `start`, as `step` goes")
  return cast(cast(iota([n if n == span else n + 1]), f64) * step + start, dtype)
}

# `arange` of four arguments.
def arange_from(start, end, step, dtype) {
  is_good = step != 0
  size = step if step > 0 else -step if is_good else error("`step` is 0")
  n = (end - start + size - 1) / size if step > 0 else (start - end + size - 1) / size
  is_small = most(start) < 2147483648 && most(-start) < 2147483648 && most(end) < 2147483648 && most(-end) < 2147483648
  i = iota([n], dtype=place_type(n * size) if is_small else i64)
  return cast((i if step == 1 else i * step) + start, dtype)
}

# `steps` numbers, equally far apart, from `start` to `end`.
def linspace(start, end, steps, dtype=f32) {
  i = cast(iota([steps]), f64 if dtype == f64 else f32)
  return linspace_known(i, start, end, steps, dtype) if is_known(steps) else linspace_counted(i, start, end, dtype)
}

# `linspace` of a number of steps, which are i.
def linspace_known(i, start, end, steps, dtype) {
  gap = (1.0 * end - start) / (steps - 1) if steps > 1 else 0.0
  return cast(where(2 * i < steps, start + i * gap, end - (steps - 1 - i) * gap), dtype)
}

# `linspace` of the steps i, whose number is known only at run time: the same bits.
def linspace_counted(i, start, end, dtype) {
  n = extent(i, 0)
  gap = cast(const(1.0 * end - start, f64) / cast(maximum(n - 1, 1), f64), dtype(i))
  last = cast(n - 1, dtype(i))
  return cast(where(2 * i < cast(n, dtype(i)), start + i * gap, end - (last - i) * gap), dtype)
}

# 1 on the diagonal of n rows and m columns, 0 elsewhere.
def eye(n, m=n, dtype=f32) = cast(iota([n, m], axis=0) == iota([n, m], axis=1), dtype)

# Integers as i32 or i64.
def as_index(x) = x if dtype(x) == i64 else cast(whole_numbers(x), i64 if dtype(x) == u32 else i32)

# 1 at the class of each index, an integer, along a new last axis, 0 elsewhere.
def one_hot(x, num_classes, dtype=i32) {
  t = as_index(x)
  classes = iota(x.shape + [num_classes], axis=-1, dtype=dtype(t))
  return cast(classes == reshape(t, x.shape + [1]), dtype)
}

# The extent of an axis as a tensor [1], for arithmetic with a dim that may be known only at run time.
def extent(x, axis, dtype=i32) = as_extent(dim(x, axis), dtype)

# The dtype of numbers from 0 to n.
def place_type(n) = i32 if most(n) < 2147483647 else i64

# An integer as a tensor [1].
def as_extent(n, dtype) = expand(const(n, dtype), [1]) if is_known(n) else iota([n + 1], dtype=dtype)[n:]

# Slices of an axis by i32 index; an index outside is clamped.
def index_select(x, axis, index) = gather(x, index_numbers(of_rank(index, 0, 1, "index"), "`index`"), axis=axis)

# The number of elements of a tensor of the shape.
def n_elements(shape) = loop i in 0:len(shape) with n = 1 { return n * shape[i] }

# The elements of the axis that `indices` names at each place; in all other axes `x` and `indices` broadcast. With
# `axis=none` the elements of all of `x`, in row-major order, as a vector. An index outside is clamped.
def take_along_dim(x, indices, axis=-1) {
  flat = gather(reshape(x, [-1]), reshape(index_numbers(indices), [-1])) if axis == none else none
  return take_along_joint(x, indices, axis) if flat == none else flat
}

# `take_along_dim` of one axis.
def take_along_joint(x, indices, axis) {
  k = axis_of(axis, rank(x))
  places = expand_beside(of_rank(index_numbers(indices), rank(x), rank(x), "indices"), x, k)
  z = expand_beside(x, indices, k)
  is_good = is_same_shape(z.shape[:k] + z.shape[k + 1:], places.shape[:k] + places.shape[k + 1:])
  return take_of_axis(z, places if is_good else error("`indices` and `x` must broadcast in all axes but axis {k}"), k)
}

# x with the extents of `y` in place of its extents of 1, in all axes but `axis`.
def expand_beside(x, y, axis) {
  shape = loop i in 0:rank(x) with shape = [] {
    return shape + [dim(y, i) if i != axis && most(dim(x, i)) == 1 else dim(x, i)]
  }
  return expand(x, shape)
}

# `take_along_dim` where `indices` has the extents of `x` in all other axes.
def take_of_axis(x, indices, k) {
  last = extent(x, k, dtype(indices)) - 1
  return take_in_axis(x, minimum(maximum(indices, 0), last), k)
}

# The same where each index is a place of the axis.
def take_in_axis(x, indices, k) {
  n_rows = n_elements(x.shape[:k])
  n_columns = n_elements(x.shape[k + 1:])
  n_taken = dim(indices, k) if most(n_rows * n_columns) == 0 else -1
  of = place_type(n_rows * dim(x, k) * n_columns)
  at = cast(reshape(indices, [n_rows, n_taken, n_columns]), of)
  begin = expand(places_of_columns(n_rows, dim(x, k), n_columns, of), at.shape)
  place = begin + (at if most(n_columns) <= 1 else at * as_extent(n_columns, of))
  taken = reshape(gather(reshape(x, [-1]), place), indices.shape)
  return expand(x, indices.shape) if is_known(dim(x, k)) && most(dim(x, k)) == 1 else taken
}

# The number of the first element of each column of [n_rows, n, n_columns], as [n_rows, 1, n_columns].
def places_of_columns(n_rows, n, n_columns, dtype) {
  shape = [n_rows, 1, n_columns]
  return iota(shape, axis=2, dtype=dtype) if most(n_rows) <= 1 else places_of_rows(shape, n, dtype)
}

# The same of several rows, of columns of that shape.
def places_of_rows(shape, n, dtype) {
  n_rows = shape[0]
  n_columns = shape[2]
  row = iota(shape, axis=0, dtype=dtype) * as_extent(n * n_columns, dtype)
  may_be_none = most(-n) >= 0
  return (row if most(n_columns) <= 1
          else row + iota(shape, axis=2, dtype=dtype) if may_be_none
          else slice(reshape(iota([n_rows * n * n_columns], dtype=dtype), [n_rows, n, n_columns]), begin=[0, 0, 0], shape=shape))
}

# The axis turned by `shift` places: what leaves at its end comes in at its begin. Of lists of axes and shifts each in
# turn; without `axis` all elements in row-major order.
def roll(x, shift, axis=none) {
  axes = [0] if axis == none else axis if is_list(axis) else [axis]
  z = reshape(x, [-1]) if axis == none else x
  y = loop i in 0:len(axes) with y = z {
    return y if most(dim(y, axis_of(axes[i], rank(y)))) == 0 else roll_one(y, each(shift, len(axes))[i], axes[i])
  }
  return reshape(y, x.shape) if axis == none else y
}

# One axis turned. Where the extent is known only at run time, the shift may or may not be less.
def roll_one(x, shift, axis) {
  k = axis_of(axis, rank(x))
  n = dim(x, k)
  is_up = most(-shift) <= 0 && most(shift - n) <= 0
  is_down = most(shift) <= 0 && most(-shift - n) <= 0
  s = (shift % n + n) % n if is_known(n) else shift if is_up else n + shift if is_down else none
  return roll_far(x, shift, k) if s == none else roll_by(x, s, k)
}

# Axis `k` turned by any number of places.
def roll_far(x, shift, k) {
  n = extent(x, k, i64)
  return gather(x, ((iota([dim(x, k)], dtype=i64) - shift) % n + n) % n, axis=k)
}

# Axis `k` turned by 0 to n places.
def roll_by(x, s, k) {
  n = dim(x, k)
  front = x.shape[:k]
  back = x.shape[k + 1:]
  last = slice(x, begin=[0] * k + [n - s] + [0] * (rank(x) - k - 1), shape=front + [s] + back)
  first = slice(x, begin=[0] * rank(x), shape=front + [n - s] + back)
  return concat([last, first], axis=k)
}
