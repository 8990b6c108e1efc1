"""The table of ATen ops: how the graph language spells each.

A row takes `out`, which has the shape and dtype that PyTorch gives the result (a list of such for several results),
and the arguments of the op. It returns the text of an expression, or a list with one for each result, where None
means that a result has no spelling. Extents are numbers or texts.
"""

OPS = {}


class Unsupported(Exception):
    """An op, a dtype or an argument that has no translation; the text says what would be needed."""


def row(*names):
    def add(function):
        for name in names:
            OPS[name] = function
        return function
    return add


# ---- texts ----

def number(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)  # `inf`, `-inf` and `nan` are the language's words too


def of_extent(extent, dtype):
    """An expression over dims, which is known only at run time, as a tensor of rank 0."""
    text = f"iota([{extent} + 1], dtype=i64)[{extent}]"
    return text if dtype == "i64" else f"cast({text}, {dtype})"


def constant(value, dtype):
    return of_extent(value, dtype) if isinstance(value, str) else f"const({number(value)}, {dtype})"


def beside(value, out):
    """An operand in the dtype of the result; a number takes the dtype of what is beside it."""
    if hasattr(value, "to"):
        return str(value.to(out))
    if isinstance(value, str):
        return of_extent(value, out)
    if out[0] in "iu" and isinstance(value, float) and value.is_integer():
        value = int(value)
    return number(value)


def shape(extents):
    return f"[{', '.join(map(str, extents))}]"


def flag(value):
    return "true" if value else "false"


def axes(x, dims):
    return [d % max(x.rank, 1) for d in ([dims] if isinstance(dims, int) else dims)]


def over(x, dims, keep):
    """The arguments `axis` and `keep` of a reduction; no dims mean all."""
    which = ("" if dims is None or dims == [] else
             f", axis={axes(x, dims)[0]}" if isinstance(dims, int) or len(dims) == 1 else f", axis={axes(x, dims)}")
    return which + (", keep=true" if keep else "")


def require(fact, needed):
    if not fact:
        raise Unsupported(needed)


def at_axis(x, axis, what):
    return ", ".join([":"] * (axis % x.rank) + [what])


def common(a, b):
    """The dtype in which two operands are compared."""
    import torch
    from fusec.torch import DTYPES

    words = {word: dtype for dtype, word in DTYPES.items()}
    like = lambda v: (torch.empty([1] * v.rank, dtype=words[v.dtype]) if hasattr(v, "rank") else
                      1 if isinstance(v, str) else v)  # an extent is an integer
    return DTYPES[torch.result_type(like(a), like(b))]


# ---- elementwise ----

def same_name(names):
    for name in names.split():
        word, op = name.split("=")[0], name.split("=")[-1]
        OPS[op + ".default"] = lambda out, x, word=word: f"{word}({x.to(out.dtype)})"


same_name("abs sign neg relu floor ceil round trunc exp log log2 log10 log1p expm1 sqrt rsqrt sin cos tan asin acos atan "
          "sinh cosh tanh asinh acosh atanh erf sigmoid silu mish hardswish hardsigmoid relu6 "
          "logsigmoid=log_sigmoid softsign selu")
for _name in ("isnan", "isinf"):
    OPS[_name + ".default"] = lambda out, x, word=_name: f"{word}({x})" if x.is_float else f"{x} != {x}"


def binary(op, spell):
    def write(out, a, b, alpha=1):
        b = beside(b, out.dtype)
        return spell.format(a=beside(a, out.dtype), b=b if alpha == 1 else f"({b} * {number(alpha)})")
    for kind in ("Tensor", "Scalar", "default"):
        OPS[f"{op}.{kind}"] = write


for _op, _spell in [("add", "{a} + {b}"), ("sub", "{a} - {b}"), ("rsub", "{b} - {a}"), ("mul", "{a} * {b}"),
                    ("fmod", "{a} % {b}"), ("maximum", "maximum({a}, {b})"), ("minimum", "minimum({a}, {b})"),
                    ("atan2", "atan2({a}, {b})"), ("bitwise_and", "{a} & {b}"), ("bitwise_or", "{a} | {b}"),
                    ("bitwise_xor", "{a} ^ {b}"), ("div", "{a} / {b}")]:
    binary(_op, _spell)


def compare(op, sign):
    def write(out, a, b):
        dtype = common(a, b)
        return f"{beside(a, dtype)} {sign} {beside(b, dtype)}"
    OPS[op + ".Tensor"] = OPS[op + ".Scalar"] = write


for _op, _sign in [("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")]:
    compare(_op, _sign)
for _op, _sign in [("and", "&&"), ("or", "||"), ("xor", "!=")]:
    OPS[f"logical_{_op}.default"] = lambda out, a, b, sign=_sign: f"{a.to('bool')} {sign} {b.to('bool')}"


@row("logical_not.default")
def _(out, x):
    return f"!{x.to('bool')}"


@row("bitwise_not.default")
def _(out, x):
    return f"!{x}" if x.dtype == "bool" else f"~{x}"


def remainder(out, a, b):
    """The remainder with the sign of the divisor, as Python has it; `%` has that of the dividend."""
    r = f"({a} % {b})"
    return f"where(({r} != 0) && (({r} < 0) != ({b} < 0)), {r} + {b}, {r})"


@row("remainder.Tensor", "remainder.Scalar")
def _(out, a, b):
    return remainder(out, a.to(out.dtype), beside(b, out.dtype) if hasattr(b, "to") else constant(b, out.dtype))


@row("div.Tensor_mode", "div.Scalar_mode")
def _(out, a, b, rounding_mode=None):
    a, b = beside(a, out.dtype), beside(b, out.dtype) if hasattr(b, "to") else constant(b, out.dtype)
    if rounding_mode is None:
        return f"{a} / {b}"
    if out.dtype[0] in "iu":
        return f"{a} / {b}" if rounding_mode == "trunc" else f"({a} - {remainder(out, a, b)}) / {b}"
    return f"{rounding_mode}({a} / {b})"


@row("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _(out, a, b):
    if b in (1, 2, 3) and not hasattr(b, "to"):
        return " * ".join([beside(a, out.dtype)] * int(b))
    require(out.dtype[0] not in "iu", "pow of integers takes the exponents 1, 2 and 3; cast to a float before")
    if b == 0.5:
        return f"sqrt({beside(a, out.dtype)})"
    return f"pow({beside(a, out.dtype)}, {beside(b, out.dtype)})"


@row("reciprocal.default")
def _(out, x):
    return f"1.0 / {x.to(out.dtype)}"


@row("clamp.default", "clamp.Tensor", "hardtanh.default")
def _(out, x, low=None, high=None):
    if low is None and high is None:
        low, high = -1.0, 1.0
    text = beside(x, out.dtype)
    text = text if low is None else f"maximum({text}, {beside(low, out.dtype)})"
    return text if high is None else f"minimum({text}, {beside(high, out.dtype)})"


@row("where.self")
def _(out, c, a, b):
    return f"where({c.to('bool')}, {beside(a, out.dtype)}, {beside(b, out.dtype)})"


@row("gelu.default")
def _(out, x, approximate="none"):
    return f"gelu({x})" if approximate == "none" else f"gelu_tanh({x})"


@row("elu.default")
def _(out, x, alpha=1, scale=1, input_scale=1):
    x = str(x) if input_scale == 1 else f"{x} * {number(input_scale)}"
    text = f"elu({x}, alpha={float(alpha)})"
    return text if scale == 1 else f"{text} * {number(scale)}"


@row("leaky_relu.default")
def _(out, x, slope=0.01):
    return f"leaky_relu({x}, {number(slope)})"


@row("_to_copy.default", "clone.default", "alias.default", "detach.default", "lift_fresh_copy.default",
     "contiguous.default")
def _(out, x, shape=None, **kwargs):
    return str(x.to(out.dtype))


@row("native_dropout.default")
def _(out, x, p, train=None):
    require(not train, "dropout in training draws random numbers from a key; call model.eval()")
    return [str(x), None]


# ---- tensors from nothing ----

@row("full.default", "full_like.default", "fill.Scalar", "scalar_tensor.default")
def _(out, *args, **kwargs):
    value = args[0] if len(args) == 1 else args[1]
    text = flag(value) if out.dtype == "bool" else constant(value, out.dtype)
    return f"expand({text}, {shape(out.shape)})" if out.shape else text


@row("empty.memory_format", "empty_strided.default")
def _(out, *args, **kwargs):
    return f"zeros({shape(out.shape)}, dtype={out.dtype})"


@row("copy.default")
def _(out, x, source):
    return f"expand({source.to(out.dtype)}, {shape(out.shape)})"


@row("arange.start_step")
def _(out, start, end, step=1, **kwargs):
    whole = out.dtype in ("i32", "i64")
    text = f"iota({shape(out.shape)}, dtype={out.dtype if whole else 'i64'})"
    text = text if whole else f"cast({text}, {out.dtype})"
    text = text if step == 1 else f"{text} * {number(step)}"
    return text if start == 0 else f"{text} + {beside(start, out.dtype)}"


# ---- reductions ----

def reduction(word, *names):
    def write(out, x, dims=None, keep=False, dtype=None, **kwargs):
        return f"{word}({x.to(out.dtype)}{over(x, dims, keep)})"
    row(*names)(write)


reduction("sum", "sum.dim_IntList", "sum.default")
reduction("prod", "prod.default", "prod.dim_int")
reduction("mean", "mean.default", "mean.dim")
reduction("max", "amax.default", "max.default")
reduction("min", "amin.default", "min.default")
for _word in ("any", "all"):
    for _kind in ("default", "dim", "dims"):
        OPS[f"{_word}.{_kind}"] = lambda out, x, dims=None, keep=False, word=_word: f"{word}({x}{over(x, dims, keep)})"


def argument(word):
    def write(out, x, dim=None, keep=False):
        if dim is None:
            return f"cast({word}(reshape({x}, [-1]), axis=0), i64)"
        return f"cast({word}({x}{over(x, dim, keep)}), i64)"
    OPS[word + ".default"] = write


argument("argmax")
argument("argmin")
for _word in ("max", "min"):
    OPS[_word + ".dim"] = lambda out, x, dim, keep=False, word=_word: [
        f"{word}({x}{over(x, dim, keep)})", f"cast(arg{word}({x}{over(x, dim, keep)}), i64)"]


@row("var.correction", "var.dim")
def _(out, x, dims=None, unbiased=True, keepdim=False, correction=None):
    correction = (1 if unbiased else 0) if correction is None else correction
    return f"var({x}{over(x, dims, keepdim)}, correction={correction})"


@row("cumsum.default")
def _(out, x, dim, dtype=None):
    return f"cumsum({x.to(out.dtype)}, axis={axes(x, dim)[0]})"


@row("sort.default")
def _(out, x, dim=-1, descending=False):
    text = f"sort({x}, axis={axes(x, dim)[0]}, descending={flag(descending)})"
    return [f"{text}[0]", f"cast({text}[1], i64)"]


@row("topk.default")
def _(out, x, k, dim=-1, largest=True, is_sorted=True):
    text = f"topk({x}, {k}, axis={axes(x, dim)[0]}, largest={flag(largest)})"
    return [f"{text}[0]", f"cast({text}[1], i64)"]


OPS["_softmax.default"] = lambda out, x, dim, half=False: f"softmax({x}, axis={axes(x, dim)[0]})"
OPS["_log_softmax.default"] = lambda out, x, dim, half=False: f"log_softmax({x}, axis={axes(x, dim)[0]})"


# ---- shapes ----

@row("view.default", "_unsafe_view.default", "reshape.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default")
def _(out, x, *args):
    return f"reshape({x}, {shape(out.shape)})"


def memory_order(extents, strides):
    """The axes from the outermost in memory, where the tensor is dense; else None."""
    order = sorted(range(len(extents)), key=lambda k: (-strides[k], k))
    step = 1
    for k in reversed(order):
        if extents[k] != 1 and strides[k] != step:
            return None
        step *= extents[k]
    return order


@row("as_strided.default")
def _(out, x, extents, strides, offset=0):
    require(all(isinstance(n, int) for n in x.shape + list(x.strides) + extents + strides), "strides must be numbers")
    before, after = memory_order(x.shape, x.strides), memory_order(extents, strides)
    require(before and after and not offset, "only all of a tensor in another order is a reshape and transpose")
    inner = f"reshape(transpose({x}, perm={before}), {[extents[k] for k in after]})"
    return f"transpose({inner}, perm={[after.index(k) for k in range(len(after))]})"


@row("expand.default")
def _(out, x, *args, **kwargs):
    return f"expand({x}, {shape(out.shape)})"


@row("permute.default")
def _(out, x, perm):
    return f"transpose({x}, perm={axes(x, perm)})"


@row("repeat.default")
def _(out, x, repeats):
    return f"repeat({x}, {shape(repeats)})"


@row("flip.default")
def _(out, x, dims):
    text = str(x)
    for axis in axes(x, dims):
        text = f"flip({text}, {axis})"
    return text


@row("cat.default")
def _(out, xs, dim=0):
    xs = [x.to(out.dtype) for x in xs if x.shape != [0] or out.rank == 1]
    return f"concat([{', '.join(map(str, xs))}], axis={dim % out.rank})"


@row("split_with_sizes.default")
def _(out, x, sizes, dim=0):
    return [f"split({x}, {shape(sizes)}, axis={axes(x, dim)[0]})[{i}]" for i in range(len(sizes))]


def place(x, axis, at):
    """An index along an axis, counted from the end where negative; never beyond the axis where both are numbers."""
    if isinstance(at, int) and at < 0:
        at = max(x.shape[axis] + at, 0) if isinstance(x.shape[axis], int) else f"{x.shape[axis]} - {-at}"
    return min(at, x.shape[axis]) if isinstance(at, int) and isinstance(x.shape[axis], int) else at


@row("select.int")
def _(out, x, dim, index):
    axis = dim % x.rank
    return f"{x}[{at_axis(x, axis, str(place(x, axis, index)))}]"


@row("slice.Tensor")
def _(out, x, dim=0, start=None, end=None, step=1):
    axis = dim % x.rank
    begin = place(x, axis, start or 0)
    if begin == 0 and step == 1 and out.shape == x.shape:
        return str(x)
    steps = "" if step == 1 else f", step={[step if k == axis else 1 for k in range(x.rank)]}"
    begins = [begin if k == axis else 0 for k in range(x.rank)]
    return f"slice({x}, begin={shape(begins)}, shape={shape(out.shape)}{steps})"


@row("slice_scatter.default")
def _(out, x, source, dim=0, start=None, end=None, step=1):
    require(step == 1, "only a step of 1 is a concat of parts")
    axis = dim % x.rank
    begin = place(x, axis, start or 0)
    parts = [f"{x}[{at_axis(x, axis, f':{begin}')}]"] if begin != 0 else []
    last = f"{begin} + {source.shape[axis]}"
    rest = [] if end is None or end == x.shape[axis] or isinstance(end, int) and end >= 2**31 else [
        f"{x}[{at_axis(x, axis, f'{last}:')}]"]
    return f"concat([{', '.join(parts + [str(source.to(out.dtype))] + rest)}], axis={axis})"


@row("select_scatter.default")
def _(out, x, source, dim, index):
    axis = dim % x.rank
    at = f"iota({shape(x.shape)}, axis={axis}) == {beside(place(x, axis, index), 'i32')}"
    wide = shape(x.shape[:axis] + [1] + x.shape[axis + 1:])
    return f"where({at}, reshape({source.to(out.dtype)}, {wide}), {x})"


def pads(x, pad):
    low, high = [0] * x.rank, [0] * x.rank
    for k in range(len(pad) // 2):
        low[x.rank - 1 - k], high[x.rank - 1 - k] = pad[2 * k], pad[2 * k + 1]
    return low, high


@row("constant_pad_nd.default")
def _(out, x, pad, value=0):
    low, high = pads(x, pad)
    positive = lambda list_: [max(n, 0) if isinstance(n, int) else n for n in list_]
    text = f"pad({x}, low={shape(positive(low))}, high={shape(positive(high))}, value={number(value)})"
    cut = [max(-n, 0) if isinstance(n, int) else 0 for n in low]
    if any(isinstance(n, int) and n < 0 for n in low + high):
        return f"slice({text}, begin={cut}, shape={shape(out.shape)})"
    return text


def bordered(mode, *names):
    def write(out, x, pad):
        low, high = pads(x, pad)
        return f'pad({x}, low={shape(low)}, high={shape(high)}, mode="{mode}")'
    row(*names)(write)


bordered("reflect", *(f"reflection_pad{n}d.default" for n in (1, 2, 3)))
bordered("replicate", *(f"replication_pad{n}d.default" for n in (1, 2, 3)))


# ---- indices ----

@row("embedding.default")
def _(out, weight, indices, *args, **kwargs):
    return f"gather({weight}, {indices}, axis=0)"


@row("index_select.default")
def _(out, x, dim, index):
    return f"gather({x}, {index}, axis={dim % x.rank})"


@row("gather.default")
def _(out, x, dim, index, sparse_grad=False):
    axis = dim % x.rank
    wide = index.shape[:axis] + [x.shape[axis]] + index.shape[axis + 1:]
    part = str(x) if wide == x.shape else f"slice({x}, begin={[0] * x.rank}, shape={shape(wide)})"
    return f"take_along_dim({part}, {index}, axis={axis})"


def flat_index(x, indices, used):
    """One index of the axes `used`, taken as one axis, from an index of each; below 0 they count from the end."""
    require(all(indices[k].dtype != "bool" for k in used), "a mask gives a shape that depends on numbers; use where")
    require(used == list(range(used[0], used[-1] + 1)), "the index tensors must stand side by side; permute before")
    extent = lambda k: beside(x.shape[k], indices[k].dtype)
    where = lambda k: f"where({indices[k]} < 0, {indices[k]} + {extent(k)}, {indices[k]})"
    at = where(used[0])
    for k in used[1:]:
        at = f"({at}) * {extent(k)} + {where(k)}"
    return at


def broadcast(shapes):
    rank = max(map(len, shapes))
    wide = [[1] * (rank - len(extents)) + extents for extents in shapes]
    return [next((n for n in column if n != 1), 1) for column in zip(*wide)]


@row("index.Tensor", "_unsafe_index.Tensor")
def _(out, x, indices):
    used = [k for k, index in enumerate(indices) if index is not None]
    at = flat_index(x, indices, used)
    flat = x if len(used) == 1 else f"reshape({x}, {shape(x.shape[:used[0]] + [-1] + x.shape[used[-1] + 1:])})"
    return f"gather({flat}, {at}, axis={used[0]})"


def scattered(word, x, dim, index, source, *rest):
    """PyTorch ignores what `source` has beyond the shape of `index`."""
    axis = dim % x.rank
    require(index.shape[:axis] + index.shape[axis + 1:] == x.shape[:axis] + x.shape[axis + 1:],
            "the index must have the extents of the input in all axes but this one")
    part = source if source.shape == index.shape else (
        f"slice({source}, begin={[0] * x.rank}, shape={shape(index.shape)})")
    return f"{word}({', '.join(map(str, [x, axis, index, part, *rest]))})"


OPS["scatter.src"] = lambda out, x, dim, index, src: scattered("scatter", x, dim, index, src)
OPS["scatter_add.default"] = lambda out, x, dim, index, src: scattered("scatter_add", x, dim, index, src)
OPS["scatter.value"] = lambda out, x, dim, index, value: (
    f"scatter({x}, {dim % x.rank}, {index}, full({shape(index.shape)}, {number(value)}, {x.dtype}))")
OPS["scatter_reduce.two"] = lambda out, x, dim, index, src, reduce, include_self=True: scattered(
    "scatter_reduce", x, dim, index, src, f'"{reduce}"', f"include_self={flag(include_self)}")


@row("index_put.default", "_unsafe_index_put.default")
def _(out, x, indices, values, accumulate=False):
    used = [k for k, index in enumerate(indices) if index is not None]
    if indices[used[0]].dtype == "bool":
        mask = indices[used[0]]
        require(used == [0] and values.shape in ([], [1]) and not accumulate, "a mask takes one number, which it sets")
        wide = f"reshape({mask}, {shape(mask.shape + [1] * (x.rank - mask.rank))})"
        return f"where({wide}, {values.to(out.dtype)}, {x})"
    at, first, last = flat_index(x, indices, used), used[0], used[-1]
    places = broadcast([indices[k].shape for k in used])
    # The axes of the index first, as one.
    n, rest = len(places), [k for k in range(x.rank) if k not in used]
    wide = shape(x.shape[:first] + places + x.shape[last + 1:])
    order = [first + k for k in range(n)] + list(range(first)) + list(range(first + n, first + n + x.rank - last - 1))
    others = [x.shape[k] for k in rest]
    source = f"reshape(transpose(expand({values}, {wide}), perm={order}), {shape([-1] + others)})"
    flat = f"reshape(transpose({x}, perm={used + rest}), {shape([-1] + others)})"
    word = "index_add" if accumulate else "index_copy"
    put = f"{word}({flat}, 0, reshape({at}, [-1]), {source})"
    back = [(used + rest).index(k) for k in range(x.rank)]
    return f"transpose(reshape({put}, {shape([x.shape[k] for k in used + rest])}), perm={back})"


@row("diagonal.default")
def _(out, x, offset=0, dim1=0, dim2=1):
    first, second = axes(x, [dim1, dim2])
    at = lambda start: f"iota([{out.shape[-1]}]) + {start}" if start else f"iota([{out.shape[-1]}])"
    rest = [k for k in range(x.rank) if k not in (first, second)]
    last = f"transpose({x}, perm={rest + [first, second]})"
    others, n = [x.shape[k] for k in rest], x.shape[second]
    flat = f"reshape({last}, {shape(others + [-1])})"
    place = f"({at(max(-offset, 0))}) * {beside(n, 'i32')} + {at(max(offset, 0))}"
    return f"gather({flat}, {place}, axis={len(others)})"


# ---- products, convolutions, norms ----

@row("mm.default", "bmm.default", "matmul.default")
def _(out, a, b):
    return f"{a} @ {b}"


@row("addmm.default")
def _(out, bias, a, b, beta=1, alpha=1):
    product = f"{a} @ {b}" if alpha == 1 else f"({a} @ {b}) * {number(alpha)}"
    return f"{product} + {bias}" if beta == 1 else f"{product} + {bias} * {number(beta)}"


@row("convolution.default")
def _(out, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    word = f"conv{'_transpose' if transposed else ''}{x.rank - 2}d"
    args = [str(x), str(weight)] + ([f"bias={bias}"] if bias is not None else [])
    for name, value, usual in [("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)]:
        value = value * (x.rank - 2) if len(value) == 1 else value
        args += [] if all(v == usual for v in value) else [f"{name}={shape(value)}"]
    args += [f"output_padding={shape(output_padding)}"] if transposed and any(output_padding) else []
    return f"{word}({', '.join(args + ([f'groups={groups}'] if groups != 1 else []))})"


def each(value, n):
    value = [value] if isinstance(value, int) else list(value)
    return value * n if len(value) == 1 else value


def reach_last_window(out, x, size, stride, padding, dilation):
    """`x` with -inf behind it as far as the last windows reach, which `ceil_mode` keeps."""
    n = len(size)
    require(x.is_float and all(isinstance(e, int) for e in x.shape[-n:]), "ceil_mode takes floats of fixed extents")
    reach = lambda k: (out.shape[k - n] - 1) * stride[k] + dilation[k] * (size[k] - 1) + 1
    behind = [max(reach(k) - x.shape[k - n] - 2 * padding[k], 0) for k in range(n)]
    none = [0] * (x.rank - n)
    return f"pad({x}, low={none + [0] * n}, high={none + behind}, value=-inf)" if any(behind) else x


def pooling(word, rank):
    def max_pool(out, x, size, stride=None, padding=0, dilation=1, ceil_mode=False):
        if ceil_mode:
            x = reach_last_window(out[0], x, *[each(v, rank) for v in (size, stride or size, padding, dilation)])
        return [f"{word}({x}, {shape(size)}, stride={shape(stride or size)}, padding={padding}, dilation={dilation})", None]

    def avg_pool(out, x, size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor=None):
        require(not ceil_mode and divisor is None, "ceil_mode and divisor_override of averages have no spelling")
        return (f"{word}({x}, {shape(size)}, stride={shape(stride or size)}, padding={padding}, "
                f"count_include_pad={flag(count_include_pad)})")
    return max_pool if word.startswith("max") else avg_pool


for _rank in (2, 3):
    OPS[f"max_pool{_rank}d_with_indices.default"] = pooling(f"max_pool{_rank}d", _rank)
for _rank in (1, 2, 3):
    OPS[f"avg_pool{_rank}d.default"] = pooling(f"avg_pool{_rank}d", _rank)
    OPS[f"_adaptive_avg_pool{_rank}d.default"] = OPS[f"adaptive_avg_pool{_rank}d.default"] = (
        lambda out, x, size, rank=_rank: f"adaptive_avg_pool{rank}d({x}, {shape(size)})")


def per_channel(value, usual, n, dtype):
    return str(value) if value is not None else f"full([{n}], {usual}, {dtype})"


@row("_native_batch_norm_legit_no_training.default")
def _(out, x, weight, bias, mean, variance, momentum, eps):
    weight, bias = per_channel(weight, 1, x.shape[1], x.dtype), per_channel(bias, 0, x.shape[1], x.dtype)
    return [f"batchnorm({x}, {mean}, {variance}, {weight}, {bias}, eps={eps})", None, None]


@row("_native_batch_norm_legit.no_stats")
def _(out, x, weight, bias, training, momentum, eps):
    weight, bias = per_channel(weight, 1, x.shape[1], x.dtype), per_channel(bias, 0, x.shape[1], x.dtype)
    over_all = [k for k in range(x.rank) if k != 1]
    mean, variance = f"mean({x}, axis={over_all})", f"var({x}, axis={over_all})"
    return [f"batchnorm({x}, {mean}, {variance}, {weight}, {bias}, eps={eps})", None, None]


@row("native_layer_norm.default")
def _(out, x, normalized, weight, bias, eps):
    last = list(range(x.rank - len(normalized), x.rank))
    ones = lambda usual: f"full({shape(normalized)}, {usual}, {x.dtype})"
    return [f"layernorm({x}, {weight or ones(1)}, {bias or ones(0)}, "
            f"axis={last if len(last) > 1 else last[0]}, eps={eps})", None, None]


@row("native_group_norm.default")
def _(out, x, weight, bias, n, c, hw, groups, eps):
    weight, bias = per_channel(weight, 1, c, x.dtype), per_channel(bias, 0, c, x.dtype)
    return [f"groupnorm({x}, {groups}, {weight}, {bias}, eps={eps})", None, None]


@row("_native_batch_norm_legit_functional.default")
def _(out, *args):
    raise Unsupported("batch norm in training changes its statistics; call eval()")


# ---- images ----

def resize(mode):
    def write(out, x, size, *args):
        scales, corners = args[-1], args[0] if len(args) == 2 else False
        scales = scales and [int(f) if float(f).is_integer() else f for f in scales]
        how = f"scale_factor={shape(scales)}" if scales is not None else f"size={shape(out.shape[2:])}"
        return f'interpolate({x}, {how}, mode="{mode}"{", align_corners=true" if corners else ""})'
    return write


OPS["upsample_nearest2d.vec"] = resize("nearest")
OPS["upsample_bilinear2d.vec"] = resize("bilinear")


@row("grid_sampler_2d.default")
def _(out, x, grid, mode=0, padding=0, align_corners=False):
    modes, paddings = ["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]
    return (f'grid_sample({x}, {grid}, mode="{modes[mode]}", padding_mode="{paddings[padding]}", '
            f"align_corners={flag(align_corners)})")
