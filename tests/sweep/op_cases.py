"""A case of each op, beside NumPy and PyTorch. CASES maps a name to a function that makes a case of a Draw."""
import math

import numpy as np
import torch

from draw import ANY, DTYPES, FLOATS, INTEGERS, NUMBERS, STORED, Case, call, compute, decode, encode, rounded, text_of

CASES = {}


def case(*names):
    """Registers the maker of cases of these ops; it gets the name after the draw if there are several."""
    def add(maker):
        for name in names:
            CASES[name] = maker if len(names) == 1 else lambda d, name=name: maker(d, name)
        return maker
    return add


def width(name):
    return DTYPES[name].numpy(0).nbytes * 8


def quotient(a, b):
    """Of integers, truncating; 0 where b is 0."""
    a, b = np.asarray(a, object), np.asarray(b, object)  # the least i64 has no absolute value
    q = np.vectorize(lambda x, y: 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
                     otypes=[object])(a, b)
    return np.where(q == 1 << 63, -1 << 63, q).astype(np.int64)


def remainder(a, b):
    return np.where(b == 0, 0, a - b * quotient(a, b))


def shifted_left(a, b, n):
    return np.where((b < 0) | (b >= n), 0, a << np.clip(b, 0, n - 1))


def shifted_right(a, b, n):
    return np.where((b < 0) | (b >= n), np.where(a < 0, -1, 0), a >> np.clip(b, 0, n - 1))


def clamped(a, b, c):
    return np.minimum(np.maximum(a, b), c)


# name: (dtypes, of floats, of integers). Results of floats are rounded to the dtype in which they are computed first.
EXACT = {
    "add": (NUMBERS, np.add, np.add), "sub": (NUMBERS, np.subtract, np.subtract), 
    "mul": (NUMBERS, np.multiply, np.multiply),
    "div": (NUMBERS, np.divide, quotient), "rem": (NUMBERS, np.fmod, remainder),
    "neg": (NUMBERS, np.negative, np.negative), "abs": (NUMBERS, np.abs, np.abs), "sign": (NUMBERS, np.sign, np.sign),
    "minimum": (NUMBERS, np.minimum, np.minimum), "maximum": (NUMBERS, np.maximum, np.maximum),
    "clamp": (NUMBERS, clamped, clamped), "relu": (NUMBERS, lambda a: np.maximum(a, 0), lambda a: np.maximum(a, 0)),
    "sqrt": (FLOATS, np.sqrt, None), "floor": (FLOATS, np.floor, None), "ceil": (FLOATS, np.ceil, None),
    "round": (FLOATS, np.rint, None), "leaky_relu": (FLOATS, None, None),
    "bitwise_and": (INTEGERS + ["bool"], None, np.bitwise_and), 
    "bitwise_or": (INTEGERS + ["bool"], None, np.bitwise_or),
    "bitwise_xor": (INTEGERS + ["bool"], None, np.bitwise_xor), "bitwise_not": (INTEGERS, None, np.invert),
    "logical_and": (["bool"], None, np.logical_and), "logical_or": (["bool"], None, np.logical_or),
    "logical_not": (["bool"], None, np.logical_not)}
COMPARISONS = {"less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
               "equal": np.equal, "not_equal": np.not_equal}


def broadcast(d, n, most=600):
    """The shapes of n operands that broadcast to one, which is the first of the results."""
    shape = d.shape(0, 4, most)
    shapes = []
    for k in range(n):
        dropped = d.int(0, len(shape)) if d.flag(0.2) else 0
        shapes.append(tuple(1 if d.flag(0.15) else e for e in shape[dropped:]))
    return shapes


def operands(d, dtype, n):
    """Names and arrays of n operands; and whether all have the shape of the result."""
    if d.flag(0.6):
        shape = d.shape(0, 4)
        return {"abc"[k]: (dtype, d.wild(dtype, shape)) for k in range(n)}, len(shape) > 0
    return {"abc"[k]: (dtype, d.wild(dtype, shape)) for k, shape in enumerate(broadcast(d, n))}, False


def arrays(inputs):
    return [array for _, array in inputs.values()]


def n_operands(function):
    return getattr(function, "nin", None) or function.__code__.co_argcount


def exact(d, name):
    dtypes, of_floats, of_integers = EXACT[name]
    dtype = d.of(dtypes)
    function = of_floats if DTYPES[dtype].is_float else of_integers
    inputs, batch = operands(d, dtype, n_operands(function))
    with np.errstate(all="ignore"):
        wanted = function(*arrays(inputs))
    if DTYPES[dtype].is_float:
        wanted = rounded(compute(dtype), wanted)
    return Case(call(name, *inputs), inputs, [(dtype, wanted)], batch=batch)


for name in EXACT:
    if name != "leaky_relu":
        CASES[name] = lambda d, name=name: exact(d, name)


@case("leaky_relu")
def leaky_relu(d):
    dtype, slope = d.of(FLOATS), d.of([None, 0.25, 0.5])
    inputs, batch = operands(d, dtype, 1)
    a, = arrays(inputs)
    factor = rounded(compute(dtype), 0.01) if slope is None else slope
    with np.errstate(all="ignore"):
        wanted = np.where(a > 0, a, rounded(compute(dtype), a * factor))
    wanted = np.where(np.isnan(a), np.nan, wanted)
    text = call("leaky_relu", "a") if slope is None else call("leaky_relu", "a", slope)
    if slope and d.flag(0.3):
        text = call("leaky_relu", "a", negative_slope=slope)
    return Case(text, inputs, [(dtype, wanted)], relative=2 * DTYPES[dtype].eps, absolute=2 * DTYPES[dtype].tiny,
                batch=batch)


@case(*COMPARISONS)
def comparison(d, name):
    dtype = d.of(ANY if name in ("equal", "not_equal") else NUMBERS)
    inputs, batch = operands(d, dtype, 2)
    a, b = arrays(inputs)
    if d.flag() and a.shape == b.shape:
        inputs["b"] = (dtype, b := np.where(d.rng.random(a.shape) < 0.5, a, b))
    return Case(call(name, *inputs), inputs, [("bool", COMPARISONS[name](a, b))], batch=batch)


@case("bitwise_left_shift", "bitwise_right_shift")
def shift(d, name):
    dtype = d.of(INTEGERS)
    inputs, batch = operands(d, dtype, 2)
    a, b = arrays(inputs)
    if d.flag(0.8):
        inputs["b"] = (dtype, b := d.integers(dtype, b.shape, 0 if dtype[0] == "u" else -2, width(dtype) + 2))
    by = shifted_left if "left" in name else shifted_right
    return Case(call(name, *inputs), inputs, [(dtype, by(a, b, width(dtype)))], batch=batch)


@case("where")
def where(d):
    dtype = d.of(ANY)
    shapes = broadcast(d, 3)
    inputs = {"c": ("bool", d.integers("bool", shapes[0])), "a": (dtype, d.wild(dtype, shapes[1])),
              "b": (dtype, d.wild(dtype, shapes[2]))}
    return Case("where(c, a, b)", inputs, [(dtype, np.where(*arrays(inputs)))])


def in_torch(function):
    return lambda a: function(torch.from_numpy(np.asarray(a, np.float64))).numpy()


def long(function):
    """A function of NumPy, in more digits than f64 has."""
    return lambda *a: function(*(np.asarray(x, np.longdouble) for x in a))


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def gelu_tanh(a):
    """Without the difference of nearly equal numbers that the formula has; of -inf it is -inf times 0."""
    u = np.sqrt(np.longdouble(2) / np.pi) * (a + np.longdouble(0.044715) * a * a * a)
    return a * sigmoid(2 * u)


def gelu(a):
    a = np.asarray(a, np.float64)
    return 0.5 * a * np.vectorize(math.erfc, otypes=[float])(-a / np.sqrt(2))


# Functions of one float within a bound: how they are computed here.
BOUNDED = {
    "exp": long(np.exp), "exp2": long(np.exp2), "log": long(np.log), "log2": long(np.log2),
    "rsqrt": long(lambda a: 1 / np.sqrt(a)), "sin": long(np.sin), "cos": long(np.cos), "tanh": long(np.tanh),
    "erf": in_torch(torch.erf), "sigmoid": long(sigmoid), "silu": long(lambda a: a * sigmoid(a)),
    "softplus": long(lambda a: np.logaddexp(a, 0)), "gelu": gelu, "gelu_tanh": long(gelu_tanh),
    "expm1": long(np.expm1), "log1p": long(np.log1p), "log10": long(np.log10), "tan": long(np.tan),
    "asin": long(np.arcsin), "acos": long(np.arccos), "atan": long(np.arctan), "sinh": long(np.sinh),
    "cosh": long(np.cosh), "asinh": long(np.arcsinh), "acosh": long(np.arccosh), "atanh": long(np.arctanh),
    "cbrt": long(np.cbrt),
    "trunc": long(np.trunc),
    "elu": in_torch(torch.nn.functional.elu), "selu": in_torch(torch.nn.functional.selu),
    "celu": in_torch(torch.nn.functional.celu), "mish": in_torch(torch.nn.functional.mish),
    "relu6": in_torch(torch.nn.functional.relu6), "hardsigmoid": in_torch(torch.nn.functional.hardsigmoid),
    "hardswish": in_torch(torch.nn.functional.hardswish), "softsign": in_torch(torch.nn.functional.softsign),
    "logsigmoid": long(lambda a: -np.logaddexp(-a, 0))}
DOMAINS = {"log": (0, 50), "log2": (0, 50), "log10": (0, 50), "rsqrt": (0, 50), "asin": (-1, 1), "acos": (-1, 1),
           "atanh": (-1, 1), "acosh": (1, 30), "log1p": (-1, 9)}
FROM_TORCH = {"erf", "gelu", "elu", "selu", "celu", "mish", "hardsigmoid", "hardswish", "softsign"}


def within(name, dtype, bounds):
    """The relative and absolute bound that docs/OPS.md states for an op, as those of a case."""
    ulps, absolute = bounds[name].get(dtype, (0, 0))
    of = DTYPES[dtype]
    slack = 8 if dtype == "f64" and name in FROM_TORCH else 0  # of the reference
    return (ulps + slack) * of.eps, absolute + (ulps + slack) * of.tiny


def bounded(d, name, bounds):
    dtype = d.of(FLOATS)
    shape = d.shape(0, 4)
    inside = name in DOMAINS and d.flag(0.7)
    low, high = DOMAINS.get(name, (None, None))
    a = d.floats(dtype, shape, low=low, high=high) if inside else d.wild(dtype, shape)
    with np.errstate(all="ignore"):
        wanted = np.asarray(BOUNDED[name](a), np.float64)
    relative, absolute = within(name, dtype, bounds)
    return Case(call(name, "a"), {"a": (dtype, a)}, [(dtype, wanted)], relative, absolute, batch=len(shape) > 0)


def add_bounded(bounds):
    for name in BOUNDED:
        CASES[name] = lambda d, name=name: bounded(d, name, bounds)
    CASES["pow"] = lambda d: power(d, bounds)


def power(d, bounds):
    dtype = d.of(FLOATS)
    inputs, batch = operands(d, dtype, 2)
    a, b = arrays(inputs)
    if d.flag(0.7):
        inputs = {"a": (dtype, a := np.abs(d.floats(dtype, a.shape, 3))),
                  "b": (dtype, b := d.floats(dtype, b.shape, 3))}
    with np.errstate(all="ignore"):
        wanted = np.asarray(long(np.power)(a, b), np.float64)
    relative, absolute = within("pow", dtype, bounds)
    return Case("pow(a, b)", inputs, [(dtype, wanted)], relative, absolute, batch)


@case("floor_divide")
def floor_divide(d):
    dtype = d.of(NUMBERS)
    inputs, batch = operands(d, dtype, 2)
    if d.flag() and DTYPES[dtype].is_float:  # quotients near integers
        inputs = {k: (dtype, rounded(dtype, np.round(d.floats(dtype, x.shape, 50)) * 0.1)) for k, (_, x) in inputs.items()}
    words = ["a", "b"]
    if d.flag(0.3):
        words = d.of([["a", 3], ["a", 7], [5, "a"]])
    values = [inputs[w][1] if isinstance(w, str) else np.asarray(w, inputs["a"][1].dtype) for w in words]
    with np.errstate(all="ignore"):
        wanted = np.floor_divide(*(v.astype(np.float64) for v in values) if DTYPES[dtype].is_float else values)
    inputs = {w: inputs[w] for w in words if isinstance(w, str)}
    if not DTYPES[dtype].is_float:
        return Case(call("floor_divide", *words), inputs, [(dtype, wanted)], batch=batch and len(inputs) == 2)
    return Case(call("floor_divide", *words), inputs, [(dtype, wanted)], 2 * DTYPES[dtype].eps, 0, batch and len(inputs) == 2)


@case("atan2", "hypot")
def of_two(d, name):
    dtype = d.of(FLOATS)
    inputs, batch = operands(d, dtype, 2)
    a, b = arrays(inputs)
    if name == "hypot":
        a, b = (np.where(np.abs(x) > 1e15, 1.0, x) for x in (a, b)) if dtype in ("f16",) else (a, b)
        inputs = {"a": (dtype, a), "b": (dtype, b)}
    with np.errstate(all="ignore"):
        wanted = np.asarray(long(np.arctan2 if name == "atan2" else np.hypot)(a, b), np.float64)
    text = call(name, "a", "b")
    if d.flag(0.3):  # a number in place of a tensor
        number, left = d.of([0.5, 1.0, -2.0, 3]), d.flag()
        text = call(name, *((number, "a") if left else ("a", number)))
        wanted = np.asarray(long(np.arctan2 if name == "atan2" else np.hypot)(*((number, a) if left else (a, number))),
                            np.float64)
        inputs = {"a": inputs["a"]}
    return Case(text, inputs, [(dtype, wanted)], 8 * DTYPES[dtype].eps, 8 * DTYPES[dtype].tiny, batch)


@case("isnan", "isinf", "isfinite")
def is_what(d, name):
    dtype = d.of(NUMBERS)
    inputs, batch = operands(d, dtype, 1)
    return Case(call(name, "a"), inputs, [("bool", getattr(np, name)(arrays(inputs)[0]))], batch=batch)


def cast_to(dtype, source, a):
    """What a cast gives: floats are rounded once; to integers they saturate and NaN is 0."""
    if dtype == "bool":
        return a != 0
    if DTYPES[dtype].is_float or not DTYPES[source].is_float:
        return rounded(dtype, a)
    info = np.iinfo(DTYPES[dtype].numpy)
    whole = np.trunc(np.where(np.isnan(a), 0, a))
    inside = np.clip(whole, float(info.min), np.nextafter(float(info.max), 0) if dtype == "i64" else float(info.max))
    return np.where(whole >= float(info.max), info.max, inside.astype(np.int64))


@case("cast")
def cast(d):
    source, dtype = d.of(ANY), d.of(ANY)
    shape = d.shape(0, 3)
    a = d.wild(source, shape)
    if d.flag() and DTYPES[source].is_float:
        a = d.floats(source, shape, 200)
    wanted = cast_to(dtype, source, a)
    return Case(f"cast(a, {dtype})", {"a": (source, a)}, [(dtype, wanted)], batch=len(shape) > 0)


@case("bitcast")
def bitcast(d):
    source = d.of(ANY)
    dtype = d.of([n for n in ANY if n != "bool" and width(n) == width(source)])
    if source == "bool":
        dtype = d.of(["i8", "u8"])
    shape = d.shape(0, 3)
    a = d.wild(source, shape)
    bits = encode(source, a)
    return Case(f"bitcast(a, {dtype})", {"a": (source, a)}, [(dtype, decode(dtype, bits.view(DTYPES[dtype].numpy)))])


# Reductions.

def all_axes(axis, rank):
    if axis is None:
        return tuple(range(rank))
    return tuple(k % rank for k in (axis if isinstance(axis, list) else [axis]))


def sum_bound(dtype, n, size):
    """Of a sum of n terms with |terms| of the sum `size`: rounding of each step, and of the result."""
    return 2 * DTYPES[dtype].eps, (n ** 0.5 + 8) * DTYPES[compute(dtype)].eps * size


@case("sum", "mean", "prod", "max", "min")
def reduction(d, name):
    dtype = d.of(FLOATS if name == "mean" else NUMBERS + ["bool"])
    shape = d.shape(1, 4, 3000)
    axis, keep = d.axes(len(shape)), d.flag()
    over = all_axes(axis, len(shape))
    n = int(np.prod([shape[k] for k in over]))
    if name in ("max", "min") or dtype == "bool":
        a = d.wild(dtype, shape)
    elif name == "prod":
        a = d.floats(dtype, shape, low=0.8, high=1.25) if DTYPES[dtype].is_float else d.numbers(dtype, shape)
    else:
        a = d.numbers(dtype, shape)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(a, axis=over, keepdims=keep)
    batch = 0 not in over and len(shape) > 1
    result = "i32" if dtype == "bool" and name in ("sum", "prod") else dtype
    made = Case(call(name, "x", axis=axis, keep=keep), {"x": (dtype, a)}, [(result, wanted)], batch=batch)
    if DTYPES[dtype].is_float and name in ("sum", "mean"):
        size = float(np.max(getattr(np, name)(np.abs(a), axis=over)))
        made.relative, made.absolute = sum_bound(dtype, n, size)
    if DTYPES[dtype].is_float and name == "prod":
        made.relative, made.absolute = 2 * DTYPES[dtype].eps + n * DTYPES[compute(dtype)].eps, DTYPES[dtype].tiny
    return made


@case("argmax", "argmin")
def arg_reduction(d, name):
    dtype = d.of(NUMBERS + ["bool"])
    shape = d.shape(1, 4, 3000)
    axis, keep = d.axis(len(shape)), d.flag()
    a = d.ties(dtype, shape) if d.flag() and dtype != "bool" else d.wild(dtype, shape)
    wanted = np.argmax(a, axis) if name == "argmax" else np.argmin(a, axis)
    if d.flag(0.2):  # of all elements
        wanted = np.argmax(a) if name == "argmax" else np.argmin(a)
        wanted = np.reshape(wanted, [1] * len(shape)) if keep else wanted
        return Case(call(name, "x", **d.of([{}, {"axis": None}]), keep=keep), {"x": (dtype, a)}, [("i32", wanted)])
    wanted = np.expand_dims(wanted, axis) if keep else wanted
    batch = axis % len(shape) != 0
    return Case(call(name, "x", axis=axis, keep=keep), {"x": (dtype, a)}, [("i32", wanted)], batch=batch)


@case("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
def scan(d, name):
    dtype = d.of(FLOATS if name == "logcumsumexp" else NUMBERS + ["bool"])
    shape = d.shape(1, 4, 3000)
    axis = d.axis(len(shape))
    n, of = shape[axis], DTYPES[dtype]
    batch = axis % len(shape) != 0
    if name in ("cummax", "cummin"):
        a = d.wild(dtype, shape)
        wanted = (np.maximum if name == "cummax" else np.minimum).accumulate(a, axis)
        return Case(call(name, "x", axis=axis), {"x": (dtype, a)}, [(dtype, wanted)], batch=batch)
    if dtype == "bool":
        a = d.wild(dtype, shape)
        return Case(call(name, "x", axis=axis), {"x": (dtype, a)}, [("i32", getattr(np, name)(a, axis))], batch=batch)
    a = d.floats(dtype, shape, low=0.8, high=1.25) if name == "cumprod" and of.is_float else d.numbers(dtype, shape)
    with np.errstate(all="ignore"):
        wanted = np.logaddexp.accumulate(a, axis) if name == "logcumsumexp" else getattr(np, name)(a, axis)
    made = Case(call(name, "x", axis=axis), {"x": (dtype, a)}, [(dtype, wanted)], batch=batch)
    if of.is_float:
        relative, absolute = sum_bound(dtype, n, float(np.max(np.sum(np.abs(a), axis))))
        made.relative = relative + n * DTYPES[compute(dtype)].eps
        of_logs = 20 * n ** 0.5 * DTYPES[compute(dtype)].eps
        made.absolute = of.tiny if name == "cumprod" else absolute if name == "cumsum" else of_logs
    return made


# Sorts. Stable; NaN is the largest, and -0 equals 0.

def order_of(a, axis, descending):
    """The indices that put an axis in order."""
    a = np.asarray(a)
    rank = np.zeros(a.shape, np.int64)
    numbers = np.unique(a[~np.isnan(a)]) if a.dtype.kind == "f" else np.unique(a)
    rank = np.searchsorted(numbers, a)
    if a.dtype.kind == "f":
        rank = np.where(np.isnan(a), len(numbers), rank)
    return np.argsort(-rank if descending else rank, axis=axis, kind="stable")


@case("argsort", "argsort_descending")
def argsort(d, name):
    dtype = d.of(NUMBERS + ["bool"])
    shape = d.shape(1, 3, 3000)
    axis = d.axis(len(shape))
    a = d.ties(dtype, shape) if d.flag() and dtype != "bool" else d.wild(dtype, shape)
    down = {"descending": True} if name != "argsort" else {}
    if d.flag(0.2):
        return Case(call("argsort", "x", **down), {"x": (dtype, a)}, [("i32", order_of(a, len(shape) - 1, bool(down)))])
    return Case(call("argsort", "x", axis=axis, **down), {"x": (dtype, a)}, [("i32", order_of(a, axis, bool(down)))],
                batch=axis % len(shape) != 0)


@case("sorted_segment_sum", "sorted_segment_prod", "sorted_segment_max", "sorted_segment_min")
def segments(d, name):
    dtype, index = d.of(NUMBERS), d.of(["i32", "i64"])
    shape, n = d.shape(1, 3, 800), d.int(1, 12)
    axis = d.axis(len(shape))
    what = name.split("_")[-1]
    a = terms_of(d, dtype, shape, what)
    ids = np.sort(d.integers(index, shape, -1, n), axis=axis)
    return segment_case(call(name, "x", "ids", n, axis=axis), {"x": (dtype, a), "ids": (index, ids)}, dtype, a, ids,
                        n, axis, what)


def terms_of(d, dtype, shape, what):
    """Elements to join; of products near 1."""
    if what == "prod" and DTYPES[dtype].is_float:
        return d.floats(dtype, shape, low=0.8, high=1.25)
    return d.numbers(dtype, shape)


def least_of(dtype):
    return -np.inf if DTYPES[dtype].is_float else np.iinfo(DTYPES[dtype].numpy).min


def greatest_of(dtype):
    return np.inf if DTYPES[dtype].is_float else np.iinfo(DTYPES[dtype].numpy).max


def segment_case(text, inputs, dtype, a, ids, n, axis, what):
    """A case whose output are the sums (or ..) of elements of equal number along an axis."""
    join = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[what]
    empty = {"sum": 0, "prod": 1, "max": least_of(dtype), "min": greatest_of(dtype)}[what]
    parts = [join(np.where(ids == k, a, empty), axis=axis, keepdims=True) for k in range(n)]
    made = Case(text, inputs, [(dtype, np.concatenate(parts, axis))])
    if DTYPES[dtype].is_float and what in ("sum", "prod"):
        m = a.shape[axis]
        made.relative, made.absolute = sum_bound(dtype, m, float(np.max(np.sum(np.abs(a), axis))))
        made.relative += (m if what == "prod" else 0) * DTYPES[compute(dtype)].eps
    return made


# Views.

@case("transpose")
def transpose(d):
    dtype, shape = d.of(ANY), d.shape(1, 5)
    a = d.wild(dtype, shape)
    perm = [int(k) for k in d.rng.permutation(len(shape))]
    return Case(call("transpose", "x", perm=perm), {"x": (dtype, a)}, [(dtype, np.transpose(a, perm))])


def factors(d, n):
    """A shape of n elements."""
    shape = []
    while n > 1 and len(shape) < 4 and d.flag(0.8):
        divisors = [k for k in range(1, n + 1) if n % k == 0]
        shape.append(d.of(divisors))
        n //= shape[-1]
    return tuple(shape) + (n,)


@case("reshape")
def reshape(d):
    dtype, shape = d.of(ANY), d.shape(0, 4)
    a = d.wild(dtype, shape)
    new = factors(d, a.size)
    given = list(new)
    if d.flag():
        given[d.int(0, len(given) - 1)] = -1
    return Case(call("reshape", "x", given), {"x": (dtype, a)}, [(dtype, a.reshape(new))])


@case("expand")
def expand(d):
    dtype, shape = d.of(ANY), d.shape(1, 4)
    own = tuple(1 if d.flag(0.4) else e for e in shape)
    a = d.wild(dtype, own[d.int(0, len(own) - 1):] if d.flag(0.3) else own)
    given = [-1 if k >= len(shape) - a.ndim and d.flag(0.2) and a.shape[k - len(shape)] == e else e
             for k, e in enumerate(shape)]
    return Case(call("expand", "x", given), {"x": (dtype, a)}, [(dtype, np.broadcast_to(a, shape))])


@case("slice")
def slices(d):
    dtype, shape = d.of(ANY), d.shape(1, 4)
    a = d.wild(dtype, shape)
    parts, text = [], []
    for n in shape:
        if d.flag(0.2):
            k = d.int(-n, n - 1)
            parts.append(k), text.append(str(k))
            continue
        step = d.of([1, 1, 2, 3, -1, -2])
        first, last = sorted((d.int(0, n), d.int(0, n)))
        if step < 0:
            if first == last:
                last += 1 if last < n else 0
                first -= 1 if first == last else 0
            begin, end = last - 1, (first - 1 if first > 0 else None)
        else:
            begin, end = first, last
        parts.append(slice(begin, end, step))
        text.append(f"{begin}:{'' if end is None else end}:{step}")
    return Case(f"x[{', '.join(text)}]", {"x": (dtype, a)}, [(dtype, a[tuple(parts)])])


@case("pad")
def pad(d):
    dtype, shape = d.of(ANY), d.shape(1, 4, 300)
    a = d.wild(dtype, shape)
    mode = d.of(["constant", "constant", "reflect", "replicate", "circular"])
    most = {"constant": 3, "reflect": min(shape) - 1, "replicate": 3, "circular": min(shape)}[mode]
    low, high = ([d.int(0, min(most, 3)) for _ in shape] for _ in range(2))
    if mode != "constant":
        kind = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
        wanted = np.pad(a, list(zip(low, high)), mode=kind)
        return Case(call("pad", "x", low=low, high=high, mode=mode), {"x": (dtype, a)}, [(dtype, wanted)])
    value = d.of([0, 1]) if dtype != "bool" else d.flag()
    interior = [d.int(0, 2) if d.flag(0.4) else 0 for _ in shape]
    spread = np.full([(n - 1) * (k + 1) + 1 for n, k in zip(shape, interior)], value, a.dtype)
    spread[tuple(slice(None, None, k + 1) for k in interior)] = a
    wanted = np.pad(spread, list(zip(low, high)), constant_values=value)
    return Case(call("pad", "x", low=low, high=high, value=value, interior=interior), {"x": (dtype, a)},
                [(dtype, wanted)])


def spread_size(size, dilation):
    return (size - 1) * dilation + 1


def window_view(a, axes, size, stride, dilation, low, high, value):
    """Windows of some axes: the taps are axes behind the last of these."""
    padding = [(0, 0)] * a.ndim
    for k, axis in enumerate(axes):
        padding[axis] = (low[k], high[k])
    b = np.pad(a, padding, constant_values=value)
    spans = [spread_size(s, e) for s, e in zip(size, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(b, spans, axes)
    pick = [slice(None)] * view.ndim
    for k, axis in enumerate(axes):
        pick[axis] = slice(None, None, stride[k])
        pick[a.ndim + k] = slice(None, None, dilation[k])
    view = view[tuple(pick)]
    front = list(range(max(axes) + 1))
    taps = list(range(a.ndim, view.ndim))
    return view.transpose(front + taps + list(range(max(axes) + 1, a.ndim)))


@case("windows")
def windows(d):
    dtype, shape = d.of(ANY), d.shape(1, 4, 200)
    a = d.wild(dtype, shape)
    n = d.int(1, min(2, len(shape)))
    axes = sorted(int(k) for k in d.rng.permutation(len(shape))[:n])
    low, high = ([d.int(0, 2) for _ in axes] for _ in range(2))
    size, dilation = [], []
    for k, axis in enumerate(axes):
        room = shape[axis] + low[k] + high[k]
        dilation.append(d.int(1, 2))
        size.append(d.int(1, max(1, min(4, (room - 1) // dilation[k] + 1))))
    stride = [d.int(1, 3) for _ in axes]
    value = d.of([0, 1]) if dtype != "bool" else d.flag()
    wanted = window_view(a, axes, size, stride, dilation, low, high, value)
    return Case(call("windows", "x", size=size, axis=axes, stride=stride, dilation=dilation, low=low, high=high,
                     value=value),
                {"x": (dtype, a)}, [(dtype, wanted)])


@case("gather")
def gather(d):
    dtype, index = d.of(ANY), d.of(["i32", "i64"])
    shape, at = d.shape(1, 3, 200), d.shape(0, 2, 30)
    axis = d.axis(len(shape))
    a, k = d.wild(dtype, shape), d.integers(index, at, -2, shape[axis] + 1)
    return Case(call("gather", "x", "i", axis=axis), {"x": (dtype, a), "i": (index, k)},
                [(dtype, np.take(a, np.clip(k, 0, shape[axis] - 1), axis))])


@case("concat")
def concat(d):
    dtype, shape = d.of(ANY), d.shape(1, 3, 200)
    axis = d.axis(len(shape))
    parts = {}
    for k in range(d.int(1, 4)):
        own = list(shape)
        own[axis] = d.int(1, 9)
        parts["abcd"[k]] = (dtype, d.wild(dtype, own))
    return Case(f"concat([{', '.join(parts)}], axis={axis})", parts, [(dtype, np.concatenate(arrays(parts), axis))])


@case("dynamic_update_slice")
def update(d):
    dtype, index = d.of(ANY), d.of(["i32", "i64"])
    shape = d.shape(1, 3, 300)
    size = [d.int(1, n) for n in shape]
    starts = d.integers(index, (len(shape),), -2, max(shape))
    a, u = d.wild(dtype, shape), d.wild(dtype, size)
    wanted = a.copy()
    first = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, shape, size)]
    wanted[tuple(slice(f, f + m) for f, m in zip(first, size))] = u
    return Case("dynamic_update_slice(x, u, s)", {"x": (dtype, a), "u": (dtype, u), "s": (index, starts)},
                [(dtype, wanted)])


@case("iota")
def iota(d):
    dtype, shape = d.of(["i32", "i64"]), d.shape(1, 4)
    axis = d.axis(len(shape))
    along = np.arange(shape[axis]).reshape([-1 if k == axis % len(shape) else 1 for k in range(len(shape))])
    b = d.numbers(dtype, shape)
    return Case(f"b + iota({list(shape)}, axis={axis}, dtype={dtype})", {"b": (dtype, b)}, [(dtype, b + along)])


@case("const")
def const(d):
    dtype, shape = d.of(NUMBERS), d.shape(0, 3)
    b = d.numbers(dtype, shape)
    value = d.int(0, 100) if not DTYPES[dtype].is_float else float(d.rng.normal())
    wanted = b + rounded(dtype, value)
    if DTYPES[dtype].is_float:
        wanted = rounded(compute(dtype), wanted)
    return Case(f"b + const({text_of(value)}, {dtype})", {"b": (dtype, b)}, [(dtype, wanted)], batch=len(shape) > 0)


# Products.

def product_case(text, inputs, out, wanted, sizes, k, batch=False):
    """`sizes` is the product of the absolute values, `k` the number of terms."""
    if not DTYPES[out].is_float:
        return Case(text, inputs, [(out, wanted)], batch=batch)
    size = float(np.max(sizes, initial=0))
    relative, absolute = sum_bound(out, k, size)
    is_stored = any(dtype in STORED for dtype, _ in inputs.values())
    cut = 36 * 2.0**-13 * size * (k // 32 + 1) if is_stored else 0.0  # docs/OPS.md, Products
    return Case(text, inputs, [(out, wanted)], relative, absolute, batch, cut)


@case("matmul")
def matmul(d):
    dtype = d.of(NUMBERS + STORED + ["i8", "u8"])
    m, n = d.of([1, 1, 2, 5, 8, 16, 17, 33, 64]), d.of([1, 2, 5, 8, 16, 17, 33, 64])
    k = d.of([1, 2, 3, 7, 16, 32, 33, 64, 100, 129, 300])
    stacks = d.of([((), ()), ((), ()), ((3,), ()), ((2,), (2,)), ((2, 1), (3,))])
    a, b = d.numbers(dtype, stacks[0] + (m, k)), d.numbers(dtype, stacks[1] + (k, n))
    if d.flag(0.1):
        a = a[..., 0, :] if stacks[0] == () else a
    wide = {"f16": "f32", "bf16": "f32", "i8": "i32", "u8": "i32", "f8e4m3": "f32", "f8e5m2": "f32"}
    out = wide[dtype] if dtype in wide and d.flag() else dtype
    given = "" if out == dtype else f", out={out}"
    names = ["x", "w"]
    inputs = {"x": (dtype, a), "w": (dtype, b)}
    if out == "i32" and dtype in ("i8", "u8") and d.flag(0.7):  # one of each
        other = "u8" if dtype == "i8" else "i8"
        a, b = d.integers(dtype, a.shape), d.integers(other, b.shape)
        if d.flag(0.2):
            b = b[..., 0] if stacks[1] == () else b
        inputs = {"x": (dtype, a), "w": (other, b)}
    if d.flag(0.3) and a.ndim > 1:
        inputs["x"] = (dtype, np.swapaxes(a, -1, -2))
        names[0] = call("transpose", "x", perm=list(range(a.ndim - 2)) + [a.ndim - 1, a.ndim - 2])
    if d.flag(0.3) and b.ndim > 1:
        inputs["w"] = (inputs["w"][0], np.swapaxes(b, -1, -2))
        names[1] = call("transpose", "w", perm=list(range(b.ndim - 2)) + [b.ndim - 1, b.ndim - 2])
    return product_case(f"matmul({', '.join(names)}{given})", inputs, out, a @ b, np.abs(a) @ np.abs(b), k)


@case("softmax_matmul", "softmax2_matmul")
def softmax_matmul(d, name):
    dtype, stack = d.of(FLOATS), d.of([(), (3,), (2, 2)])
    m, n, k = d.of([1, 2, 5, 17, 33]), d.of([1, 2, 8, 17, 33]), d.of([1, 2, 16, 100, 129, 300])
    x, v = d.floats(compute(dtype), stack + (m, k), d.of([1, 4])), d.floats(dtype, stack + (k, n))
    out = "f32" if dtype in ("f16", "bf16") and d.flag() else dtype
    e = (np.exp if name == "softmax_matmul" else np.exp2)(x - x.max(-1, keepdims=True))
    wanted = e / e.sum(-1, keepdims=True) @ v
    bound = 16 * DTYPES[dtype].eps * float(np.abs(v).max())
    inputs = {"x": (compute(dtype), x), "v": (dtype, v)}
    return Case(call(name, *inputs, **({} if out == dtype else {"out": out})), inputs, [(out, wanted)], absolute=bound)


@case("quantize_matmul")
def quantize_matmul(d):
    dtype, stack = d.of(FLOATS + STORED + ["i8", "u8"]), d.of([(), (3,), (2, 2)])
    m, n, k = d.of([1, 2, 5, 17, 33]), d.of([1, 2, 8, 17, 33]), d.of([1, 2, 16, 100, 129, 300])
    scores = compute(dtype) if DTYPES[dtype].is_float else "f32"
    x, v = d.floats(scores, stack + (m, k), d.of([1, 4])), d.numbers(dtype, stack + (k, n))
    scale = {"i8": 127, "u8": 255, "f8e4m3": 448, "f8e5m2": 57344}.get(dtype, 1)
    is_int = not DTYPES[dtype].is_float
    y = scale * x / np.maximum(np.abs(x).max(-1, keepdims=True), 0.25)
    y = np.maximum(y, 0) if dtype == "u8" else y
    wanted = y @ v.astype(np.float64)
    step = 1 if is_int else DTYPES[dtype].eps * scale
    bound = 2 * step * float(np.abs(v.astype(np.float64)).sum(-2).max()) + 2.0**-18 * float(np.abs(wanted).max())
    out = scores if is_int or dtype in STORED else dtype
    given = dict(scale=scale, least=0.25, **({"round": True} if is_int else {}))
    return Case(call("quantize_matmul", "x", "v", **given), {"x": (scores, x), "v": (dtype, v)}, [(out, wanted)],
                absolute=bound)


@case("quantize_amax")
def quantize_amax(d):
    dtype, stack = d.of(FLOATS + STORED + ["i8", "u8"]), d.of([(), (3,), (2, 2)])
    m, n, k = d.of([1, 2, 5, 17, 33]), d.of([1, 2, 8, 17, 33]), d.of([1, 2, 16, 100, 129, 300])
    scores = compute(dtype) if DTYPES[dtype].is_float else "f32"
    x, v = d.floats(scores, stack + (m, k), d.of([1, 4])), d.numbers(dtype, stack + (k, n))
    wanted = np.broadcast_to(np.abs(x).max(-1, keepdims=True), stack + (m, n))
    return Case("quantize_amax(x, v)", {"x": (scores, x), "v": (dtype, v)}, [(scores, wanted)])


@case("softmax_lse")
def softmax_lse(d):
    dtype, stack = d.of(FLOATS), d.of([(), (3,), (2, 2)])
    m, n, k = d.of([1, 2, 5, 17, 33]), d.of([1, 2, 8, 17, 33]), d.of([1, 2, 16, 100, 129, 300])
    x, v = d.floats(compute(dtype), stack + (m, k), d.of([1, 4])), d.floats(dtype, stack + (k, n))
    top = x.max(-1, keepdims=True)
    wanted = np.broadcast_to(top + np.log(np.exp(x - top).sum(-1, keepdims=True)), stack + (m, n))
    bound = 16 * (2.0 ** -16 if dtype in ("f16", "bf16") else DTYPES[dtype].eps) * (1 + float(np.abs(wanted).max()))
    return Case("softmax_lse(x, v)", {"x": (compute(dtype), x), "v": (dtype, v)}, [(compute(dtype), wanted)], absolute=bound)
