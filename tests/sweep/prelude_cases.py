"""A case of each function of the prelude, beside NumPy and PyTorch.

CASES is like that of op_cases.py. PARTS are defs and ops that only other functions of the prelude call; the cases of
these cover them.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F

from draw import ANY, DTYPES, FLOATS, INTEGERS, NUMBERS, Case, call, compute, rounded, text_of
from op_cases import all_axes, arrays, greatest_of, least_of, order_of, product_case, segment_case, sum_bound, terms_of

CASES = {}
PARTS = {"conv_taps", "conv_transpose_weights", "avg_pool_over", "adaptive_even", "adaptive_axis", "adaptive_uneven",
         "adaptive_pool", "adaptive_max_axis", "adaptive_max_places", "adaptive_max_pool",
         "interpolate_linear", "interpolate_cubic", "interpolate_axis", "interpolate_nearest",
         "interpolate_den", "interpolate_fraction",
         "grid_pick", "grid_bilinear", "grid_places", "sort_by_index", "attention_scores", "attention_heads",
         "attention_groups", "topk_at", "largest_two", "topk_of_order", "places_beside", "scalar_start", "each_axis", "fitting", "reduced", "count", "scan_join", "scan_may_join",
         "scan_is_level", "scan_is_like", "scan_level", "scan_shift", "stack_list", "stack_steps",
         "conv_transpose_phases", "conv_transpose_plan", "conv_transpose_delay", "conv_transpose_delays", "common_divisor",
         "conv_transpose_shuffle", "conv_transpose_strided", "conv_transpose_pointwise", "conv_transpose_dense",
         "attention_mask_has_heads", "attention_group_rows", "attention_group_heads", "attention_group_mask",
         "attention_group_queries", "loop_carry", "loop_result",
         "input", "param", "class_axis", "along_classes", "picked_classes", "mean_of_rows", "soft_cross_entropy",
         "smooth_cross_entropy", "as_index", "batched", "unbatched", "biased",
         "pool_high", "pool_windows", "max_pool_indices", "max_pool_result", "pool_counted", "lp_pool", "cubic_near",
         "cubic_far", "interpolate_by", "interpolate_nearest_by", "interpolate_nearest_exact", "whole",
         "interpolate_along", "interpolate_between", "grid_mirrored", "grid_inside", "grid_bicubic", "flip_one", "roll_one", "diag_of_matrix",
         "diag_of_vector", "arange_from", "median_of_all", "median_along", "is_float", "floored",
         "axis_of", "of_rank", "is_same_shape", "whole_numbers", "classes_of_rows", "pool_padding", "is_known",
         "adaptive_counted", "roll_far", "roll_by", "linspace_known", "linspace_counted"}
PARTS |= {"floats_of", "reduction_word", "reached", "places_of_rows", "is_whole", "as_operand", "as_computed", "lowest", "adaptive_sizes", "places_of", "is_among_axes",
          "flatten_axes", "arange_of_floats", "take_along_joint", "take_of_axis", "take_in_axis", "places_of_columns", "as_extent", "place_type", "floor_of_floats", "expand_beside", "scatter_shape",
          "first_part", "with_first_part", "with_rest", "scatter_source", "scattered_at", "scaled", "shifted",
          "along_channels", "clamp_form", "leaky_relu_form", "softplus_form", "two_sinh_half", "exp_half", "expm1_narrow",
          "expm1_below"}
PARTS |= {"scan_by", "scan_elements", "scan_tiles", "scan_levels", "count_each", "count_sorted", "topk_in_tiles"}
PARTS |= {"of_channels_last", "for_filters", "for_weights", "channels_first", "channels_last", "max_pool_last", "of_channels",
          "norm_of", "interpolate_nearest_places", "whole_start", "indexed_slices", "repeat_slices", "repeat_slice",
          "repeat_evenly"}
PARTS |= {"index_numbers", "refused_numbers", "plus_sums", "reduce_word", "scaled_extent"}


def case(*names):
    """Registers the maker of cases of these functions; it gets the name after the draw if there are several."""
    def add(maker):
        for name in names:
            CASES[name] = maker if len(names) == 1 else lambda d, name=name: maker(d, name)
        return maker
    return add


def wide(*tensors):
    return [torch.from_numpy(np.array(t, order="C")) for t in tensors]


def floats_case(text, inputs, outputs, terms=1, size=None, batch=False):
    """Results of f64 arithmetic: bounded by roundings of sums of `terms` terms, whose absolute values sum to `size`, by
    default twice the largest result."""
    outputs = [(dtype, np.asarray(w)) for dtype, w in outputs]
    dtype = outputs[0][0]
    finite = [np.abs(w[np.isfinite(w)]).max(initial=0) for _, w in outputs]
    relative, absolute = sum_bound(dtype, terms, 2 * max(finite) if size is None else size)
    return Case(text, inputs, outputs, 2 * relative, 2 * absolute + DTYPES[dtype].tiny, batch)


# Convolutions and pooling.

def windowed(d, rank, size, dilation=1, padding=0):
    """Extents that hold a window."""
    return tuple((size[k] - 1) * dilation[k] + 1 + d.int(0, 5) for k in range(rank))


def window_choice(d, rank, low=1):
    """Sizes, strides, dilations, paddings: lists, or one number for all."""
    most = {1: 5, 2: 3, 3: 2}[rank]
    size = [d.int(low, most) for _ in range(rank)]
    stride, dilation = ([d.int(1, 2) for _ in range(rank)] for _ in range(2))
    padding = [d.int(0, size[k] // 2) for k in range(rank)]
    return size, stride, dilation, padding


def maybe_one(d, values):
    """A list, or its first number where all are equal."""
    return values[0] if len(set(values)) == 1 and d.flag() else values


CONVOLUTIONS = {"conv1d": (1, False), "conv2d": (2, False), "conv3d": (3, False), "conv1d_nwc": (1, True),
                "conv2d_nhwc": (2, True), "conv3d_ndhwc": (3, True)}


def last_to_second(rank):
    return [0, rank + 1, *range(1, rank + 1)]


def second_to_last(rank):
    return [0, *range(2, rank + 2), 1]


def without_batch(d, x, *wanted):
    """Sometimes an image without the axis of the batch, and its results."""
    return (a[0] for a in (x, *wanted)) if d.flag(0.2) else (x, *wanted)


@case(*CONVOLUTIONS)
def convolution(d, name):
    rank, is_last = CONVOLUTIONS[name]
    size, stride, dilation, padding = window_choice(d, rank)
    groups, dtype = d.of([1, 1, 2, 3]), d.of(FLOATS + ["i32", "i8"])
    c, n = groups * d.int(1, 4), groups * d.int(1, 4)
    extents = windowed(d, rank, size, dilation)
    x = d.numbers(dtype, (d.int(1, 2), c, *extents))
    w = d.numbers(dtype, (n, c // groups, *size))
    has_bias = d.flag() or not DTYPES[dtype].is_float
    b = d.numbers(dtype, (n,)) if has_bias else np.zeros(n)
    given = {"stride": maybe_one(d, stride), "padding": maybe_one(d, padding), "dilation": maybe_one(d, dilation),
             "groups": groups}
    if d.flag(0.2):
        given["padding"] = padding = "same"
        stride = given["stride"] = 1
    function = getattr(F, f"conv{rank}d")
    kind = np.float64 if DTYPES[dtype].is_float else np.int64
    x2, w2, b2 = wide(x.astype(kind), w.astype(kind), b.astype(kind))
    if kind is np.int64:  # PyTorch multiplies integers as floats; these are small
        x2, w2, b2 = x2.double(), w2.double(), b2.double()
    wanted = function(x2, w2, b2, stride, padding, dilation, groups).numpy()
    sizes = function(x2.abs(), w2.abs(), b2.abs(), stride, padding, dilation, groups).numpy()
    if is_last:
        x, wanted = x.transpose(second_to_last(rank)), wanted.transpose(second_to_last(rank))
        w = w.transpose(list(range(2, rank + 2)) + [1, 0])
    if not has_bias and d.flag(0.3):
        given["bias"] = None
    x, wanted = without_batch(d, x, wanted)
    inputs = {"x": (dtype, x), "w": (dtype, w), **({"b": (dtype, b)} if has_bias else {})}
    made = product_case(call(name, *inputs, **given), inputs, dtype,
                        wanted if kind is np.float64 else wanted.astype(np.int64), sizes, w[..., 0].size)
    made.absolute += DTYPES[dtype].eps * float(np.abs(wanted).max())  # product and sum are both rounded
    if kind is np.int64:
        made.relative = made.absolute = 0.0
    return made


LAYOUTS = {1: "1d_nwc", 2: "2d_nhwc", 3: "3d_ndhwc"}


def both_layouts(kind):
    """The names of a function of images of one to three axes, of channels behind the batch and at the end."""
    return [f"{kind}{rank}d" for rank in LAYOUTS] + [kind + layout for layout in LAYOUTS.values()]


@case(*both_layouts("conv_transpose"))
def transposed_convolution(d, name):
    rank, is_last = int(name[14]), name.endswith("c")
    size, stride, dilation, padding = window_choice(d, rank)
    groups, dtype = d.of([1, 1, 2, 3]), d.of(FLOATS)
    c, m = groups * d.int(1, 3), d.int(1, 3)
    x = d.numbers(dtype, (d.int(1, 2), c, *(d.int(2, 5) for _ in range(rank))))
    w, b = d.numbers(dtype, (c, m, *size)), d.numbers(dtype, (groups * m,))
    padding = [min(p, (s - 1) * e) for p, s, e in zip(padding, size, dilation)]
    more = [d.int(0, max(s, e) - 1) for s, e in zip(stride, dilation)]
    given = {"stride": maybe_one(d, stride), "padding": maybe_one(d, padding), "output_padding": maybe_one(d, more),
             "groups": groups, "dilation": maybe_one(d, dilation)}
    function = getattr(F, f"conv_transpose{rank}d")
    wanted = function(*wide(x, w, b), stride, padding, more, groups, dilation).numpy()
    sizes = function(*wide(np.abs(x), np.abs(w), np.abs(b)), stride, padding, more, groups, dilation).numpy()
    n_terms = w[:, 0].size
    if is_last:
        x, wanted = x.transpose(second_to_last(rank)), wanted.transpose(second_to_last(rank))
        w = w.transpose(list(range(2, rank + 2)) + [1, 0])
    x, wanted = without_batch(d, x, wanted)
    inputs = {"x": (dtype, x), "w": (dtype, w), "b": (dtype, b)}
    made = product_case(call(name, *inputs, **given), inputs, dtype, wanted, sizes, n_terms)
    made.absolute += DTYPES[dtype].eps * float(np.abs(wanted).max())
    return made


def pooled(d, rank):
    size, stride, dilation, padding = window_choice(d, rank)
    shape = (d.int(1, 2), d.int(1, 3), *windowed(d, rank, size, dilation))
    given = {"kernel_size": maybe_one(d, size), "stride": maybe_one(d, stride), "padding": maybe_one(d, padding)}
    if d.flag(0.3):
        given["stride"] = None
    return size, stride if given["stride"] else size, dilation, padding, shape, given


def distinct_numbers(d, dtype, shape):
    """Numbers with no NaN and few infinities, so that it is plain which one is the first of the largest."""
    x = d.ties(dtype, shape)
    return np.where(np.isnan(x), -np.inf, x) if DTYPES[dtype].is_float else x


@case(*both_layouts("max_pool"))
def max_pool(d, name):
    rank, is_last = int(name[8]), name.endswith("c")
    size, stride, dilation, padding, shape, given = pooled(d, rank)
    dtype, with_places, ceils = d.of(NUMBERS), not is_last and d.flag(0.4), d.flag(0.3)
    x = distinct_numbers(d, dtype, shape) if with_places else d.ties(dtype, shape) if d.flag() else d.wild(dtype, shape)
    wanted = getattr(F, f"max_pool{rank}d")(*wide(x), size, stride, padding, dilation, ceils, True)
    wanted = [w.numpy() for w in wanted][:2 if with_places else 1]
    if is_last:
        x, wanted = x.transpose(second_to_last(rank)), [wanted[0].transpose(second_to_last(rank))]
    x, *wanted = without_batch(d, x, *wanted)
    given.update({"ceil_mode": True} if ceils else {}, **({"return_indices": True} if with_places else {}))
    return Case(call(name, "x", **given, dilation=maybe_one(d, dilation)), {"x": (dtype, x)},
                list(zip([dtype, "i32"], wanted)))


@case(*both_layouts("avg_pool"))
def avg_pool(d, name):
    rank, is_last = int(name[8]), name.endswith("c")
    size, stride, _, padding, shape, given = pooled(d, rank)
    dtype, counts, ceils = d.of(FLOATS), d.flag(), d.flag(0.4)
    x = d.floats(dtype, shape)
    theirs = {"divisor_override": d.int(1, 5)} if rank > 1 and d.flag(0.3) else {}
    wanted = getattr(F, f"avg_pool{rank}d")(*wide(x), size, stride, padding, ceils, counts, **theirs).numpy()
    if is_last:
        x, wanted = x.transpose(second_to_last(rank)), wanted.transpose(second_to_last(rank))
    x, wanted = without_batch(d, x, wanted)
    given.update(theirs, count_include_pad=counts, **({"ceil_mode": True} if ceils else {}))
    return floats_case(call(name, "x", **given), {"x": (dtype, x)}, [(dtype, wanted)], int(np.prod(size)),
                       4.0 * int(np.prod(size)))


@case(*both_layouts("lp_pool"))
def lp_pool(d, name):
    rank = int(name[7])
    size, stride, _, _, shape, given = pooled(d, rank)
    dtype, p, ceils = d.of(FLOATS), d.of([1.0, 2.0, 3.0]), d.flag(0.3)
    del given["padding"]
    x = np.abs(d.floats(dtype, shape)) + 0.25
    x = rounded(dtype, x)
    one = rank == 1
    function = getattr(F, f"lp_pool{rank}d")
    wanted = function(*wide(x), p, size[0] if one else size, stride[0] if one else stride, ceils).numpy()
    if name.endswith("c"):
        x, wanted = x.transpose(second_to_last(rank)), wanted.transpose(second_to_last(rank))
    x, wanted = without_batch(d, x, wanted)
    given.update({"ceil_mode": True} if ceils else {})
    return floats_case(call(name, "x", p, **given), {"x": (dtype, x)}, [(dtype, wanted)], int(np.prod(size)),
                       8 * float(wanted.max()))


def adaptive_sizes(d, shape, size):
    """The sizes, of which none may stand for the extent of the image."""
    if d.flag(0.3):
        return text_of([None if n == m else m for n, m in zip(shape[2:], size)])
    return maybe_one(d, size)


@case(*both_layouts("adaptive_avg_pool"), *both_layouts("adaptive_max_pool"))
def adaptive_pool(d, name):
    rank, dtype, is_last = int(name[17]), d.of(FLOATS), name.endswith("c")
    function = getattr(F, f"{name[:17]}{rank}d")
    shape = (d.int(1, 2), d.int(1, 3), *(d.int(1, 9) for _ in range(rank)))
    size = [n if d.flag(0.2) else d.int(1, n) for n in shape[2:]]
    x = d.floats(dtype, shape)
    if "max" in name and not is_last and d.flag():
        x = distinct_numbers(d, dtype, shape)
        wanted = function(*wide(x), size, return_indices=True)
        text = call(name, "x", adaptive_sizes(d, shape, size), return_indices=True)
        return Case(text, {"x": (dtype, x)}, list(zip([dtype, "i32"], [w.numpy() for w in wanted])))
    wanted = function(*wide(x), size)
    wanted = (wanted[0] if isinstance(wanted, tuple) else wanted).numpy()
    if is_last:
        x, wanted = x.transpose(second_to_last(rank)), wanted.transpose(second_to_last(rank))
    text = call(name, "x", adaptive_sizes(d, shape, size))
    if "max" in name:
        return Case(text, {"x": (dtype, x)}, [(dtype, wanted)])
    return floats_case(text, {"x": (dtype, x)}, [(dtype, wanted)], 64, 4.0)


@case("unfold")
def unfold(d):
    size, stride, dilation, padding, shape, _ = pooled(d, 2)
    dtype = d.of(NUMBERS)
    x = d.wild(dtype, shape)
    h = F.unfold(torch.arange(1, x.size + 1, dtype=torch.float64).reshape(shape), size, dilation, padding,
                 stride).numpy().astype(int)
    wanted = np.concatenate([[0], x.ravel()])[h]
    x, wanted = without_batch(d, x, wanted)
    text = call("unfold", "x", size, dilation=maybe_one(d, dilation), padding=maybe_one(d, padding),
                stride=maybe_one(d, stride))
    return Case(text, {"x": (dtype, x)}, [(dtype, wanted)])


@case("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(d, name):
    dtype, r, h, w = d.of(ANY), d.int(1, 3), d.int(1, 5), d.int(1, 5)
    b, c = d.of([(), (1,), (2,), (2, 2)]), d.int(1, 3)
    shape = (*b, c * r * r, h, w) if name == "pixel_shuffle" else (*b, c, h * r, w * r)
    x = d.wild(dtype, shape)
    at = getattr(F, name)(torch.arange(x.size).reshape(shape), r).numpy()
    return Case(call(name, "x", r), {"x": (dtype, x)}, [(dtype, x.ravel()[at])])


@case("interpolate")
def interpolate(d):
    mode = d.of(["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"])
    rank = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}.get(mode) or d.int(1, 3)
    has_corners = mode in ("linear", "bilinear", "trilinear", "bicubic")
    dtype, corners = d.of(FLOATS), has_corners and d.flag()
    x = d.floats(dtype, (d.int(1, 2), d.int(1, 2), *(d.int(1, 10) for _ in range(rank))))
    given = {"mode": mode, **({"align_corners": True} if corners else {})}
    if d.flag(0.4):
        given["scale_factor"] = maybe_one(d, [d.int(1, 3) for _ in range(rank)])
    elif d.flag():
        given["scale_factor"] = maybe_one(d, [d.of([1.0, 1.05, 1.25, 1.5, 1.7, 2.0, 2.07, 2.3, 3.6]) for _ in range(rank)])
        given.update(d.of([{}, {"recompute_scale_factor": True}]))
    else:
        given["size"] = [d.int(1, 9) for _ in range(rank)]
    theirs = dict(given, align_corners=corners if has_corners else None)
    if "scale_factor" in theirs:
        theirs["scale_factor"] = np.array(theirs["scale_factor"], float).tolist()
    wanted = F.interpolate(*wide(x), **theirs).numpy()
    size = 16.0 * (1 + 6 * ("scale_factor" in given))  # a place is rounded, and its weight as much
    return floats_case(call("interpolate", "x", **given), {"x": (dtype, x)}, [(dtype, wanted)], 16, size)


@case("grid_sample")
def grid_sample(d):
    mode, around = d.of(["bilinear", "nearest", "bicubic"]), d.of(["zeros", "border", "reflection"])
    dtype, corners = d.of(["f64", "f32"]), d.flag()
    b, h, w = d.int(1, 2), d.int(1, 7), d.int(1, 7)
    x = d.floats(dtype, (b, d.int(1, 3), h, w))
    reach = 1.3 if around != "reflection" else 4.0
    g = d.floats(dtype, (b, d.int(1, 5), d.int(1, 5), 2), low=-reach, high=reach)
    n = np.array([w, h])
    at = (g + 1) / 2 * (n - 1) if corners else ((g + 1) * n - 1) / 2
    if mode == "nearest":  # away from the places where rounding decides
        at = np.round(at) + d.floats("f64", g.shape, low=-0.4, high=0.4)
    if mode == "bicubic":
        at = np.floor(at) + d.floats("f64", g.shape, low=0.05, high=0.95)
    if mode != "bilinear":
        g = rounded(dtype, at * 2 / np.maximum(n - 1, 1) - 1 if corners else (at * 2 + 1) / n - 1)
    wanted = F.grid_sample(*wide(x, g), mode, around, corners).numpy()
    inputs = {"x": (dtype, x), "g": (dtype, g)}
    return floats_case(call("grid_sample", "x", "g", mode=mode, padding_mode=around, align_corners=corners), inputs,
                       [(dtype, wanted)], 64, 128.0)


# Segments and scatters.

@case("segment_sum", "segment_prod", "segment_max", "segment_min")
def segment(d, name):
    dtype, index, shape, n = d.of(NUMBERS), d.of(["i32", "i64"]), d.shape(1, 3, 800), d.int(1, 12)
    axis, what = d.axis(len(shape)), name.split("_")[1]
    a = terms_of(d, dtype, shape, what)
    ids = d.integers(index, (shape[axis],), -1, n)
    along = ids.reshape([-1 if k == axis % len(shape) else 1 for k in range(len(shape))])
    return segment_case(call(name, "x", "ids", n, axis=axis), {"x": (dtype, a), "ids": (index, ids)}, dtype, a,
                        np.broadcast_to(along, shape), n, axis, what)


@case("sort_segments")
def sort_segments(d):
    dtype, index, shape = d.of(ANY), d.of(["i32", "i64"]), d.shape(1, 3, 800)
    axis = d.axis(len(shape))
    a, ids = d.wild(dtype, shape), d.integers(index, (shape[axis],), -1, 5)
    order = np.argsort(ids, kind="stable")
    along = ids[order].reshape([-1 if k == axis % len(shape) else 1 for k in range(len(shape))])
    return Case(call("sort_segments", "x", "ids", axis=axis), {"x": (dtype, a), "ids": (index, ids)},
                [(dtype, np.take(a, order, axis)), (index, np.broadcast_to(along, shape))])


def scatter_inputs(d, dtypes):
    """x, an index and a source, which have the shape of x in all axes but one, or an index that is smaller, or a number
    as the source, with the text of the source."""
    dtype, index = d.of(dtypes), d.of(["i32", "i64"])
    shape = list(d.shape(1, 3, 500))
    axis = d.axis(len(shape))
    x = d.numbers(dtype, shape)
    n, shape[axis] = shape[axis], d.int(1, 12)
    inputs = {"x": (dtype, x), "i": (index, d.integers(index, shape, -1, n)), "s": (dtype, d.numbers(dtype, shape))}
    if d.flag(0.3):
        part = [d.int(1, e) for e in shape]
        inputs["i"] = index, d.integers(index, part, -1, n)
    if not d.flag(0.2):
        return axis, inputs, inputs["s"][1], "s"
    number = d.of([0, 1, 3])
    del inputs["s"]
    return axis, inputs, np.full(shape, number, x.dtype), number


def scattered(x, axis, index, source, join):
    """x with join(element, source's) at each place that the index names, one after the other."""
    y = np.moveaxis(x.copy(), axis, 0)
    i, s = np.moveaxis(index, axis, 0), np.moveaxis(source[tuple(map(slice, index.shape))], axis, 0)
    for k in np.ndindex(i.shape):
        if 0 <= i[k] < len(y):
            y[(i[k], *k[1:])] = join(y[(i[k], *k[1:])], s[k])
    return np.moveaxis(y, 0, axis)


@case("scatter", "scatter_add")
def scatter(d, name):
    axis, inputs, s, source = scatter_inputs(d, NUMBERS)
    (dtype, x), (_, i) = inputs["x"], inputs["i"]
    is_sum = name == "scatter_add"
    wanted = scattered(x, axis, i, s, (lambda a, b: a + b) if is_sum else lambda a, b: b)
    made = Case(call(name, "x", axis, "i", source), inputs, [(dtype, wanted)])
    if is_sum and DTYPES[dtype].is_float:
        made.relative, made.absolute = sum_bound(dtype, 12, float(np.abs(s).sum(axis).max() + np.abs(x).max()))
    return made


@case("scatter_reduce")
def scatter_reduce(d):
    reduce, own = d.of(["sum", "prod", "mean", "amax", "amin"]), d.flag()
    axis, inputs, s, source = scatter_inputs(d, NUMBERS)
    (dtype, x), (_, i) = inputs["x"], inputs["i"]
    join = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    count = scattered(np.zeros(x.shape, np.int64), axis, i, np.ones(s.shape, np.int64), np.add)
    empty = {"sum": 0, "mean": 0, "prod": 1, "amax": least_of(dtype), "amin": greatest_of(dtype)}
    start = x if own else np.full(x.shape, empty[reduce], x.dtype)
    wanted = scattered(start, axis, i, s, join)
    if reduce == "mean":
        n_terms = np.maximum(count + own, 1)
        wanted = wanted / n_terms if DTYPES[dtype].is_float else wanted // n_terms
    wanted = np.where(count > 0, wanted, x)
    made = Case(call("scatter_reduce", "x", axis, "i", source, reduce=reduce, include_self=own), inputs,
                [(dtype, wanted)])
    if DTYPES[dtype].is_float:
        made.relative, made.absolute = sum_bound(dtype, 12, float(np.abs(s).sum(axis).max() + np.abs(x).max()))
        made.relative += 16 * DTYPES[compute(dtype)].eps
    return made


@case("index_add", "index_copy")
def index_add(d, name):
    dtype, index, shape = d.of(NUMBERS), d.of(["i32", "i64"]), list(d.shape(1, 3, 500))
    axis = d.axis(len(shape))
    x = d.numbers(dtype, shape)
    n, shape[axis] = shape[axis], d.int(1, 12)
    s, i = d.numbers(dtype, shape), d.integers(index, (shape[axis],), -1, n)
    along = np.broadcast_to(i.reshape([-1 if k == axis % len(shape) else 1 for k in range(len(shape))]), shape)
    wanted = scattered(x, axis, along, s, (lambda a, b: a + b) if name == "index_add" else lambda a, b: b)
    made = Case(call(name, "x", axis, "i", "s"), {"x": (dtype, x), "i": (index, i), "s": (dtype, s)},
                [(dtype, wanted)])
    if name == "index_add" and DTYPES[dtype].is_float:
        made.relative, made.absolute = sum_bound(dtype, 12, float(np.abs(s).sum(axis).max() + np.abs(x).max()))
    return made


@case("bincount")
def bincount(d):
    index, n, shape = d.of(["i32", "i64", "i16", "i8", "u8", "u32"]), d.of([d.int(1, 12), 300]), d.shape(1, 2)
    info = np.iinfo(DTYPES[index].numpy)
    x = d.integers(index, shape, max(-1, info.min), min(n, info.max))
    return Case(call("bincount", "x", n), {"x": (index, x)},
                [("i32", np.bincount(x[(x >= 0) & (x < n)], minlength=n))])


@case("histc")
def histc(d):
    dtype, bins, shape = d.of(FLOATS), d.int(1, 12), d.shape(1, 2)
    low = d.int(-3, 0)
    high = low + d.of([1, 2, 4, 8])
    bins = d.of([1, 2, 4, 8])  # parts of sizes that are floats, so that no edge is rounded
    x = rounded(dtype, d.integers("i32", shape, -16, 24) / 4.0) if d.flag() else d.floats(dtype, shape, 2)
    x = np.where(d.rng.random(shape) < 0.05, np.nan, x)
    inside = x[(x >= low) & (x <= high)]
    return Case(call("histc", "x", bins, low, high), {"x": (dtype, x)},
                [("i32", np.histogram(inside, bins, (low, high))[0])])


@case("histogram")
def histogram(d):
    dtype, shape = d.of(NUMBERS), d.shape(1, 2)
    x = d.ties(dtype, shape) if d.flag() else d.numbers(dtype, shape)
    edges = np.sort(d.numbers(dtype, (d.int(2, 12),)))
    inside = x[(x >= edges[0]) & (x <= edges[-1])]
    return Case("histogram(x, e)", {"x": (dtype, x), "e": (dtype, edges)}, [("i32", np.histogram(inside, edges)[0])])


@case("dynamic_slice")
def dynamic_slice(d):
    dtype, index, shape = d.of(ANY), d.of(["i32", "i64"]), d.shape(1, 3)
    size, starts = [d.int(1, n) for n in shape], d.integers(index, (len(shape),), -2, max(shape))
    x = d.wild(dtype, shape)
    first = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, shape, size)]
    text = f"dynamic_slice(x, [{', '.join(f's[{k}]' for k in range(len(shape)))}], {size})"
    return Case(text, {"x": (dtype, x), "s": (index, starts)},
                [(dtype, x[tuple(slice(f, f + m) for f, m in zip(first, size))])])


# Products.

@case("bmm", "addmm", "outer", "linear")
def product(d, name):
    dtype = d.of(FLOATS + ["i32", "i8", "u8"])
    m, n, k = (d.of([1, 2, 5, 8, 17, 33]) for _ in range(3))
    wider = {"f16": "f32", "bf16": "f32", "i8": "i32", "u8": "i32"}
    out = wider.get(dtype, dtype) if d.flag() and name != "outer" else dtype
    given = {} if out == dtype else {"out": out}
    stacks = (d.int(1, 3),) if name == "bmm" else ()
    a, b, c = d.numbers(dtype, (*stacks, m, k)), d.numbers(dtype, (*stacks, k, n)), d.numbers(out, (n,))
    absolute = lambda: np.abs(a) @ np.abs(b)
    if name == "bmm":
        inputs, wanted, sizes, text = {"a": (dtype, a), "b": (dtype, b)}, a @ b, absolute(), ["a", "b"]
    elif name == "outer":
        inputs, text = {"a": (dtype, a[:, 0]), "b": (dtype, b[0])}, ["a", "b"]
        wanted, sizes = np.outer(a[:, 0], b[0]), np.zeros(1)
    elif name == "linear":
        inputs, text = {"x": (dtype, a), "w": (dtype, b.T), "b": (out, c)}, ["x", "w", "b"]
        if d.flag(0.3):
            c = np.zeros(n, c.dtype)
            del inputs["b"]
            text = text[:2]
        wanted, sizes = a @ b + c, absolute() + np.abs(c)
    else:
        possible = [0.5, 1.0, 2.0] if DTYPES[dtype].is_float else [1, 2]
        factors = {"beta": d.of([0] + possible), "alpha": d.of(possible)}
        if factors["beta"] == 0 and DTYPES[out].is_float:
            c = np.full(n, np.nan)
        given.update(factors)
        inputs, text = {"x": (out, c), "a": (dtype, a), "b": (dtype, b)}, ["x", "a", "b"]
        own = factors["beta"] * c if factors["beta"] else np.zeros(n, c.dtype)
        wanted, sizes = own + factors["alpha"] * (a @ b), 2 * absolute() + 2 * np.abs(own)
    if not DTYPES[out].is_float and name in ("linear", "addmm"):
        wanted = rounded(out, wanted)
    made = product_case(call(name, *text, **given), inputs, out, wanted, sizes, k)
    if name == "outer":
        made.relative = made.absolute = 0.0
    elif DTYPES[out].is_float:
        made.absolute += 3 * DTYPES[out].eps * float(np.abs(sizes).max(initial=0))
    return made


# Activations and norms.

@case("softmax", "log_softmax")
def softmax(d, name):
    dtype, shape = d.of(FLOATS), d.shape(1, 3, 1500)
    axis = d.axis(len(shape))
    x = d.floats(dtype, shape, d.of([1, 4, 20]))
    wanted = getattr(F, name)(*wide(x), axis).numpy()
    made = floats_case(call(name, "x", axis=axis), {"x": (dtype, x)}, [(dtype, wanted)], shape[axis],
                       batch=axis % len(shape) != 0)
    made.relative += 8 * DTYPES[compute(dtype)].eps * float(np.abs(x).max())
    return made


@case("attention", "attention_lse")
def attention(d, name):
    dtype, heads, groups = d.of(FLOATS), d.of([1, 2, 4]), d.int(1, 2)
    m, n, c = d.of([1, 2, 7, 17]), d.of([1, 3, 16, 129, 140]), d.of([1, 4, 8])
    front = (d.int(1, 2), heads) if heads * groups > 1 or d.flag() else ()
    q = d.floats(dtype, (*front[:1], heads * groups, m, 8) if front else (m, 8))
    k, v = d.floats(dtype, front + (n, 8)), d.floats(dtype, front + (n, c))
    inputs, given = {"q": (dtype, q), "k": (dtype, k), "v": (dtype, v)}, {}
    mask = d.of([None, None, "bool", compute(dtype)])
    if mask == "bool":
        inputs["mask"] = "bool", (d.rng.random((m, n)) < 0.7) | (np.arange(n) == 0)
    elif mask:
        inputs["mask"] = mask, d.floats(mask, (m, n))
    elif d.flag():
        given["is_causal"] = True
    if d.flag(0.3):
        given["scale"] = 0.5
    if groups > 1:
        given["enable_gqa"] = True
    of_mask = torch.from_numpy(inputs["mask"][1]) if mask else None
    wanted = F.scaled_dot_product_attention(*wide(q, k, v), attn_mask=of_mask, **given).numpy()
    text = call(name, "q", "k", "v", *(["mask"] if mask else []), **given)
    bound, outputs = 32 * DTYPES[dtype].eps * float(np.abs(v).max()), [(dtype, wanted)]
    if name == "attention_lse":
        of_q, of_k = wide(q, np.repeat(k, groups, -3) if groups > 1 else k)
        scores = of_q @ of_k.transpose(-1, -2) * given.get("scale", 8 ** -0.5)
        if mask:
            scores = scores.masked_fill(~of_mask, -math.inf) if mask == "bool" else scores + of_mask
        if "is_causal" in given:
            scores = scores.masked_fill(torch.ones(m, n).tril() == 0, -math.inf)
        outputs.append((compute(dtype), scores.logsumexp(-1).numpy()))
        bound = max(bound, 32 * DTYPES[dtype].eps * (1 + float(scores[scores.isfinite()].abs().max())))
    return Case(text, inputs, outputs, absolute=bound)


@case("hardtanh")
def hardtanh(d):
    dtype, shape = d.of(FLOATS), d.shape(0, 3)
    x, given = d.wild(dtype, shape), d.of([{}, {"min_val": -0.5, "max_val": 2.0}])
    return Case(call("hardtanh", "x", **given), {"x": (dtype, x)}, [(dtype, F.hardtanh(*wide(x), **given).numpy())],
                batch=len(shape) > 0)


@case("glu")
def glu(d):
    dtype, shape = d.of(FLOATS), list(d.shape(1, 3))
    axis = d.axis(len(shape))
    shape[axis] *= 2
    x = d.floats(dtype, shape, 3)
    return floats_case(call("glu", "x", axis=axis), {"x": (dtype, x)}, [(dtype, F.glu(*wide(x), axis).numpy())])


def normed(z, axis, eps):
    centred = z - z.mean(axis, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(axis, keepdims=True) + eps)


@case("layernorm", "rmsnorm")
def layer_norm(d, name):
    dtype, shape, eps = d.of(FLOATS), d.shape(1, 3, 1500), d.of([1e-5, 1e-3])
    x = rounded(dtype, d.floats(dtype, shape) + d.int(0, 2))
    g, b = d.floats(dtype, shape[-1:]), d.floats(dtype, shape[-1:])
    if name == "layernorm":
        wanted = F.layer_norm(*wide(x), shape[-1:], *wide(g, b), eps).numpy()
        inputs = {"x": (dtype, x), "g": (dtype, g), "b": (dtype, b)}
    else:
        wanted = F.rms_norm(*wide(x), shape[-1:], *wide(g), eps).numpy()
        inputs = {"x": (dtype, x), "g": (dtype, g)}
    scale = 1 / np.sqrt(x.var(-1).min() + eps) if name == "layernorm" else 1
    return floats_case(call(name, *inputs, eps=eps), inputs, [(dtype, wanted)], shape[-1], 8 * max(scale, 4.0))


@case("batchnorm", "groupnorm", "instancenorm")
def channel_norm(d, name):
    dtype, groups, eps = d.of(FLOATS), d.int(1, 3), d.of([1e-5, 1e-3])
    c = groups * d.int(1, 3)
    x = d.floats(dtype, (d.int(1, 3), c, *(d.int(2, 6) for _ in range(d.int(1, 3)))))
    g, b, m = (d.floats(dtype, (c,)) for _ in range(3))
    v = d.floats(dtype, (c,), low=0.5, high=2)
    inputs = {"x": (dtype, x), "g": (dtype, g), "b": (dtype, b)}
    if name == "batchnorm":
        inputs.update(m=(dtype, m), v=(dtype, v))
        wanted, text = F.batch_norm(*wide(x, m, v, g, b), eps=eps), call(name, "x", "m", "v", "g", "b", eps=eps)
    elif name == "groupnorm":
        wanted, text = F.group_norm(*wide(x), groups, *wide(g, b), eps), call(name, "x", groups, "g", "b", eps=eps)
    else:
        wanted = F.instance_norm(*wide(x), weight=wide(g)[0], bias=wide(b)[0], eps=eps)
        text = call(name, "x", "g", "b", eps=eps)
    k = groups if name == "groupnorm" else c
    spread = x.reshape(len(x), k, -1).var(-1).min() if name != "batchnorm" else 0.5
    return floats_case(text, inputs, [(dtype, wanted.numpy())], x.size, 8 * max(4.0, 1 / np.sqrt(spread + eps)))


# Random numbers: Philox4x32-10 with integers of Python.

def philox(key, counter):
    c, (k0, k1), word = list(counter), key, 0xFFFFFFFF
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32 ^ c[1] ^ k0) & word, q & word, (p >> 32 ^ c[3] ^ k1) & word, p & word]
        k0, k1 = k0 + 0x9E3779B9 & word, k1 + 0xBB67AE85 & word
    return c


def words_of(key, shape, stream):
    """The four words of each element, as arrays."""
    n = int(np.prod(shape))
    words = [philox([int(k) for k in key], (i, 0, stream, 0)) for i in range(n)]
    return [np.array([w[k] for w in words], np.int64).reshape(shape) for k in range(4)]


def random_inputs(d):
    key, shape, stream = d.integers("u32", (2,)), d.shape(1, 3, 200), d.int(0, 5)
    return key, shape, stream, words_of(key, shape, stream)


@case("philox")
def philox_case(d):
    key, shape = d.integers("u32", (2,)), d.shape(1, 2, 100)
    c = [d.integers("u32", shape) for _ in range(4)]
    words = np.array([philox([int(k) for k in key], [int(w) for w in at]) for at in zip(*(a.ravel() for a in c))],
                     np.int64)
    inputs = {"key": ("u32", key), **{f"c{k}": ("u32", a) for k, a in enumerate(c)}}
    return Case(call("philox", *inputs), inputs, [("u32", words[:, k].reshape(shape)) for k in range(4)])


@case("random_words", "rand", "randn", "randint", "bernoulli", "dropout")
def random_numbers(d, name):
    key, shape, stream, words = random_inputs(d)
    inputs, given = {"key": ("u32", key)}, {"stream": stream} if stream else {}
    uniform = (words[0] >> 8) * 2.0 ** -24
    if name == "random_words":
        return Case(call(name, "key", list(shape), **given), inputs, [("u32", w) for w in words])
    if name == "rand":
        return Case(call(name, "key", list(shape), **given), inputs, [("f32", uniform)])
    if name == "randn":
        u = rounded("f32", words[0] + 1) * 2.0 ** -32
        wanted = np.sqrt(-2 * np.log(u)) * np.cos(np.pi * (words[1] * 2.0 ** -31 - 1))
        return Case(call(name, "key", list(shape), **given), inputs, [("f32", wanted)], absolute=1e-5)
    if name == "randint":
        low = d.int(-100, 100)
        high = low + d.of([1, 2, 10, 1000, 2 ** 31 - 1000])
        return Case(call(name, "key", list(shape), low, high, **given), inputs,
                    [("i32", (words[0] * (high - low) >> 32) + low)])
    dtype = d.of(FLOATS)
    if name == "bernoulli":
        p = d.floats(dtype, shape, low=0.0, high=1.0)
        return Case(call(name, "p", "key", **given), {"p": (dtype, p), **inputs},
                    [(dtype, (uniform < rounded("f32", p)) * 1.0)])
    x, p = d.floats(dtype, shape), d.of([0.0, 0.1, 0.5, 0.9])
    wanted = np.where(uniform >= rounded("f32", p), x / (1 - p), 0)
    return floats_case(call(name, "x", p, "key", **given), {"x": (dtype, x), **inputs}, [(dtype, wanted)])


# Reductions.

@case("logsumexp", "var", "std", "norm")
def float_reduction(d, name):
    dtype, shape, keep = d.of(FLOATS), d.shape(1, 4, 1500), d.flag()
    axis = d.axes(len(shape))
    over, x = all_axes(axis, len(shape)), d.floats(dtype, shape, 2)
    n = int(np.prod([shape[k] for k in over]))
    given, size = {}, 8.0 * max(1.0, float(np.abs(x).max()) ** 2)
    if name == "logsumexp":
        if d.flag(0.2):
            x = np.where(d.rng.random(shape) < 0.3, d.of([np.inf, -np.inf]), x)
        wanted = torch.logsumexp(*wide(x), over, keep).numpy()
    elif name == "norm":
        p = d.of([0, 1, 2, 3, np.inf, -np.inf])
        x = np.where(d.rng.random(shape) < 0.1, 0.0, x)
        given = {"p": p} if p != 2 else {}
        wanted = torch.linalg.vector_norm(*wide(x), p, over, keep).numpy()
    else:
        correction = d.of([0, 1, 1, 3])
        given = {"correction": correction} if correction else {}
        wanted = getattr(torch, name)(*wide(x), over, correction=correction, keepdim=keep).numpy()
    batch = 0 not in over and len(shape) > 1
    if name in ("std", "norm"):
        size = 8.0 * float(np.abs(x).max()) + float(wanted.max())
    return floats_case(call(name, "x", axis=axis, keep=keep, **given), {"x": (dtype, x)}, [(dtype, wanted)], n, size,
                       batch)


@case("any", "all", "count_nonzero")
def truth(d, name):
    dtype, shape, keep = d.of(NUMBERS + ["bool"]), d.shape(1, 4, 1500), d.flag()
    axis = d.axes(len(shape))
    x = np.where(d.rng.random(shape) < d.of([0.02, 0.5, 0.98]), d.wild(dtype, shape), 0)
    x = x != 0 if dtype == "bool" else x
    wanted = getattr(np, name)(x != 0, axis=all_axes(axis, len(shape)), keepdims=keep)
    return Case(call(name, "x", axis=axis, keep=keep), {"x": (dtype, x)},
                [("i32" if name == "count_nonzero" else "bool", wanted)],
                batch=0 not in all_axes(axis, len(shape)) and len(shape) > 1)


# Shapes and parts.

def moved(text, dtype, x, wanted, batch=False):
    return Case(text, {"x": (dtype, x)}, [(dtype, wanted)], batch=batch)


@case("squeeze", "unsqueeze", "flatten", "flip", "roll", "repeat_interleave", "repeat", "tile")
def shapes(d, name):
    dtype, shape = d.of(ANY), list(d.shape(1, 4, 200))
    axis = d.axis(len(shape))
    if name == "squeeze":
        shape[axis] = d.of([1, 1, 1, 3])
    if name == "flatten" and d.flag(0.1):
        x = d.wild(dtype, ())
        return moved("flatten(x)", dtype, x, x.reshape(1))
    x = d.wild(dtype, shape)
    if name == "squeeze":
        if d.flag():
            return moved("squeeze(x)", dtype, x, np.squeeze(x))
        if d.flag(0.3):
            axis = [int(k) for k in d.rng.permutation(len(shape))[:d.int(1, len(shape))]]
        of_one = tuple(k for k in all_axes(axis, len(shape)) if shape[k] == 1)
        return moved(call(name, "x", axis), dtype, x, np.squeeze(x, of_one))
    if name == "unsqueeze":
        axis = d.int(-len(shape) - 1, len(shape))
        return moved(call(name, "x", axis), dtype, x, np.expand_dims(x, axis))
    if name == "flatten":
        first, last = sorted((d.int(0, len(shape) - 1), d.int(0, len(shape) - 1)))
        given = [first, last - len(shape) if d.flag() else last]
        return moved(call(name, "x", *given), dtype, x, x.reshape(shape[:first] + [-1] + shape[last + 1:]))
    if name == "flip":
        axis = d.axes(len(shape)) or axis
        return moved(call(name, "x", axis), dtype, x, np.flip(x, axis))
    if name == "roll":
        shift = d.int(-2 * shape[axis], 2 * shape[axis])
        if d.flag(0.2):
            return moved(call(name, "x", shift), dtype, x, np.roll(x, shift))
        if d.flag(0.4):
            axis = [int(k) for k in d.rng.permutation(len(shape))[:d.int(1, len(shape))]]
            shift = [d.int(-9, 9) for _ in axis]
        return moved(call(name, "x", shift, axis), dtype, x, np.roll(x, shift, axis))
    if name == "repeat_interleave":
        n = d.int(1, 3)
        if d.flag(0.2):
            return moved(call(name, "x", n), dtype, x, np.repeat(x, n))
        if d.flag(0.3) and shape[axis] < 9:
            n = [d.int(0, 3) for _ in range(shape[axis] - 1)] + [1]
        return moved(call(name, "x", n, axis), dtype, x, np.repeat(x, n, axis))
    least = len(shape) if name == "repeat" else 1
    times = [d.int(1, 3) for _ in range(d.int(least, max(least, len(shape)) + 1))]
    return moved(call(name, "x", times), dtype, x, np.tile(x, times))


@case("stack")
def stack(d):
    dtype, shape = d.of(ANY), d.shape(0, 3, 200)
    axis = d.int(-len(shape) - 1, len(shape))
    parts = {"abcd"[k]: (dtype, d.wild(dtype, shape)) for k in range(d.int(1, 4))}
    return Case(f"stack([{', '.join(parts)}], axis={axis})", parts, [(dtype, np.stack(arrays(parts), axis))])


@case("tril", "triu")
def triangle(d, name):
    dtype, shape, diagonal = d.of(NUMBERS + ["bool"]), d.shape(2, 3), d.int(-3, 3)
    x = d.wild(dtype, shape)
    return moved(call(name, "x", diagonal=diagonal), dtype, x, getattr(np, name)(x, diagonal), batch=len(shape) == 3)


@case("diag", "trace")
def diagonal(d, name):
    dtype, n = d.of(NUMBERS + ["bool"] * (name == "diag")), d.int(1, 33)
    m = n if name == "trace" or d.flag() else d.int(1, 33)
    x = (d.wild if dtype == "bool" else d.numbers)(dtype, (n, m) if name == "trace" or d.flag() else (n,))
    if name == "diag":
        at = d.int(1 - n, m - 1) if x.ndim == 2 else d.int(-5, 5)
        return moved(call("diag", "x", *([at] if at or d.flag() else [])), dtype, x, np.diag(x, at))
    if not DTYPES[dtype].is_float:
        return moved("trace(x)", dtype, x, np.trace(x))
    return floats_case("trace(x)", {"x": (dtype, x)}, [(dtype, np.trace(x))], n, float(np.abs(x).max()) * n)


@case("full", "zeros", "ones", "eye")
def made_of_numbers(d, name):
    dtype, shape = d.of(NUMBERS + ["bool"]), d.shape(1, 3)
    value = d.int(0, 1) if dtype == "bool" else d.int(0, 9)
    n, m = d.int(1, 40), d.int(1, 40)
    text, array = {
        "full": (f"full({list(shape)}, {value}, {dtype})", np.full(shape, value)),
        "zeros": (f"zeros({list(shape)}, {dtype})", np.zeros(shape, int)),
        "ones": (f"ones({list(shape)}, {dtype})", np.ones(shape, int)),
        "eye": (f"eye({n}, {m}, {dtype})", np.eye(n, m, dtype=int))}[name]
    if dtype == "bool":
        x = d.wild(dtype, array.shape)
        text = text if name != "full" or d.flag() else f"full({list(shape)}, {'true' if value else 'false'})"
        return Case(f"x == {text}", {"x": (dtype, x)}, [(dtype, x == (array != 0))])
    x = d.integers("i32", array.shape, 0, 9)
    return Case(f"x + {text}", {"x": (dtype, x)}, [(dtype, x + array)])


@case("arange")
def arange(d):
    if d.flag(0.3):
        begin, step = d.of([0, 0.5, -1.0, 2]), d.of([0.25, 0.1, 1.5, -0.3])
        end, dtype = begin + step * d.of([1, 2, 7, 8.5, 20]), d.of(["f32", "f64"])
        array = np.arange(begin, end, step)
        more = "" if dtype == "f32" and d.flag() else f", dtype={dtype}"
        x = np.zeros(array.shape)
        return Case(f"x + arange({begin}, {end!r}, {step}{more})", {"x": (dtype, x)},
                    [(dtype, begin + np.arange(len(array)) * step)])
    dtype, n = d.of(NUMBERS), d.int(1, 40)
    begin, step = d.int(0, 9), d.of([1, 2, 3, -1, -2])
    end = begin + n if step > 0 else d.int(-9, begin - 1)
    array, text = d.of([(np.arange(n), f"arange({n}, {dtype})"), (np.arange(n), f"arange({n}, dtype={dtype})"),
                        (np.arange(begin, begin + n), f"arange({begin}, {begin + n}, dtype={dtype})"),
                        (np.arange(begin, end, step), f"arange({begin}, {end}, {step}, {dtype})")])
    x = d.integers("i32", array.shape, 9, 18)
    return Case(f"x + {text}", {"x": (dtype, x)}, [(dtype, rounded(dtype, x + array))])


@case("linspace")
def linspace(d):
    dtype, n, begin, end = d.of(FLOATS), d.int(1, 40), d.of([0, -1, 0.5]), d.of([1, 3, -2.5])
    x = np.zeros(n)
    wanted = torch.linspace(begin, end, n, dtype=torch.float64).numpy()
    return floats_case(f"x + linspace({begin}, {end}, {n}, {dtype})", {"x": (dtype, x)}, [(dtype, wanted)], 4, 8.0)


@case("one_hot")
def one_hot(d):
    dtype, index, n, shape = d.of(NUMBERS), d.of(INTEGERS), d.int(1, 12), d.shape(0, 2, 100)
    x = d.integers(index, shape, 0 if index[0] == "u" else -1, n)
    return Case(f"one_hot(x, {n}, {dtype})", {"x": (index, x)}, [(dtype, (x[..., None] == np.arange(n)).astype(int))],
                batch=len(shape) > 0)


@case("extent")
def extent(d):
    dtype, shape = d.of(["i32", "i64"]), d.shape(1, 3)
    axis, x = d.axis(len(shape)), d.integers(dtype, shape, 0, 9)
    return moved(f"x + extent(x, {axis}, {dtype})", dtype, x, x + shape[axis], batch=True)


@case("n_elements")
def n_elements(d):
    dtype, shape = d.of(ANY), d.shape(1, 4)
    k, x = d.int(0, len(shape)), d.wild(dtype, shape)
    wanted = x.reshape((int(np.prod(shape[:k])), *shape[k:]))
    return moved(f"reshape(x, [n_elements(x.shape[:{k}])] + x.shape[{k}:])", dtype, x, wanted, batch=k == 1)


@case("index_select", "take_along_dim")
def picked(d, name):
    dtype, index, shape = d.of(ANY), d.of(["i32", "i64"]), list(d.shape(1, 3, 300))
    axis, x = d.axis(len(shape)), d.wild(dtype, shape)
    n = shape[axis]
    if name == "index_select":
        i = d.integers(index, (d.int(1, 9),), -1, n)
        return Case(call(name, "x", axis, "i"), {"x": (dtype, x), "i": (index, i)},
                    [(dtype, np.take(x, np.clip(i, 0, n - 1), axis))])
    if d.flag(0.1):
        i = d.integers(index, d.shape(1, 2, 20), -1, x.size)
        return Case(call(name, "x", "i", axis=None), {"x": (dtype, x), "i": (index, i)},
                    [(dtype, x.ravel()[np.clip(i, 0, x.size - 1)].ravel())])
    for k in range(len(shape)):  # axes that broadcast
        if k != axis % len(shape) and d.flag(0.2):
            if d.flag():
                x = x[tuple(slice(0, 1 if j == k else None) for j in range(len(shape)))]
            else:
                shape[k] = 1
    shape[axis] = d.int(1, 9)
    i = d.integers(index, shape, -1, n)
    return Case(call(name, "x", "i", axis=axis), {"x": (dtype, x), "i": (index, i)},
                [(dtype, np.take_along_axis(x, np.clip(i, 0, n - 1), axis))])


# Scans.

@case("scan")
def scan(d):
    dtype, shape, back = d.of(NUMBERS), d.shape(1, 4, 600), d.flag()
    axis, function = d.axis(len(shape)), d.of(("maximum", "minimum", "add"))
    x = d.numbers(dtype, shape) if function == "add" else d.wild(dtype, shape)
    ordered = np.flip(x, axis) if back else x
    with np.errstate(all="ignore"):
        wanted = getattr(np, function).accumulate(ordered, axis, dtype=x.dtype)
    made = Case(call("scan", function, "x", axis=axis, reverse=back), {"x": (dtype, x)},
                [(dtype, np.flip(wanted, axis) if back else wanted)], batch=axis % len(shape) != 0)
    if function == "add" and DTYPES[dtype].is_float:
        made.relative, made.absolute = sum_bound(dtype, shape[axis], float(np.max(np.sum(np.abs(x), axis))))
        eps = DTYPES[dtype].eps / DTYPES[compute(dtype)].eps  # each sum is rounded to the dtype
        made.relative, made.absolute = made.relative * eps, made.absolute * eps
    return made


# Sorts.

@case("sort", "topk", "median")
def sorts(d, name):
    dtype, shape = d.of(NUMBERS + ["bool"] * (name == "sort")), d.shape(1, 3, 2000)
    axis, down = d.axis(len(shape)), d.flag()
    x = d.ties(dtype, shape) if d.flag() and dtype != "bool" else d.wild(dtype, shape)
    order = order_of(x, axis, down)
    if name == "median":
        keep, axes = d.flag(), axis
        if d.flag(0.2):
            shape, whole, axes, axis = (x.size,), shape, None, 0
            x = x.ravel()
        middle = np.take(np.take_along_axis(x, order_of(x, axis, False), axis), [(shape[axis] - 1) // 2], axis)
        wanted = np.where(np.isnan(x).any(axis, keepdims=True), np.nan, middle) if DTYPES[dtype].is_float else middle
        wanted = wanted if keep else np.squeeze(wanted, axis)
        if axes is None:
            x, wanted = x.reshape(whole), wanted.reshape([1] * len(whole) if keep else [])
        return moved(call(name, "x", axis=axes, keep=keep), dtype, x, wanted)
    if name == "sort":
        return Case(call(name, "x", axis=axis, descending=down), {"x": (dtype, x)},
                    [(dtype, np.take_along_axis(x, order, axis)), ("i32", order)])
    k = d.int(1, min(shape[axis], 9))
    order = np.take(order, range(k), axis)
    return Case(call(name, "x", k, axis=axis, largest=down), {"x": (dtype, x)},
                [(dtype, np.take_along_axis(x, order, axis)), ("i32", order)])


@case("searchsorted", "bucketize")
def searchsorted(d, name):
    dtype, right = d.of(NUMBERS), d.flag()
    front, n, m = d.shape(0, 1, 9) if name == "searchsorted" else (), d.int(1, 40), d.int(1, 40)
    s = np.sort(d.ties(dtype, front + (n,)) if d.flag() else d.wild(dtype, front + (n,)), -1)
    v = d.ties(dtype, front + (m,)) if d.flag() else d.wild(dtype, front + (m,))
    v = np.where(d.rng.random(v.shape) < 0.3, s[..., :1], v)
    side = "right" if right else "left"
    if front == () and d.flag(0.2):
        number = d.int(0, 3)
        text = call(name, *(("s", number) if name == "searchsorted" else (number, "s")), right=right)
        return Case(text, {"s": (dtype, s)}, [("i32", np.searchsorted(s, number, side))])
    rows = zip(s.reshape(-1, n), v.reshape(-1, m))
    wanted = np.stack([np.searchsorted(a, b, side) for a, b in rows]).reshape(v.shape)
    inputs = {"s": (dtype, s), "v": (dtype, v)}
    if front == () and d.flag():  # a vector, and values of any shape
        v, wanted = v.reshape(-1, 1, m), wanted.reshape(-1, 1, m)
        inputs["v"] = dtype, v
    text = call(name, *("sv" if name == "searchsorted" else "vs"), right=right)
    return Case(text, inputs, [("i32", wanted)], batch=front != ())
