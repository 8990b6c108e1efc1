"""The table of ATen ops: how the graph language spells each.

A row takes `out`, which has the shape and dtype that PyTorch gives the result (a list of such for several results),
and the arguments of the op. It returns the text of an expression, or a list with one for each result, where None
means that a result has no spelling. Extents are numbers or texts.
"""

import math

OPS = {}


# Ops without a row: why, or what would be needed.
NO_ROW = {
    "_fft_c2r.default": "complex numbers have no dtype",
    "_fft_r2c.default": "complex numbers have no dtype",
    "_local_scalar_dense.default": "no row: the number is a tensor of rank 0, which an op may take as an operand",
    "_native_batch_norm_legit.default": "batch norm in training changes its statistics; call eval()",
    "_native_batch_norm_legit_functional.default": "batch norm in training changes its statistics; call eval()",
    "associative_scan": "write cumsum, cumprod, cummax or logcumsumexp, or the steps one by one",
    "atan2.out": "torch.export has atan2.default in its place",
    "nonzero.default": "the result's shape depends on numbers; use where, or sums with a mask",
    "rand.default": "random numbers of PyTorch's generator; the language draws them from a key, rand(key, shape)",
    "randn.default": "random numbers of PyTorch's generator; the language draws them from a key, randn(key, shape)",
    "randperm.default": "random numbers of PyTorch's generator; argsort(rand(key, [n])) draws an order from a key",
    "resize_.default": "tensors have one shape; use a slice or pad",
    "scan": "a fixed number of steps may be written one by one in Python; in the language it is `loop`",
    "while_loop": "the number of rounds follows from values of tensors; a fixed number may be a loop of Python",
}


# Of ops that are not core ATen ones, by the names of their packets: what would be needed.
NEEDED = [
    ("random numbers of PyTorch's generator; make them an input, or draw them in the language from a key that is one: "
     "rand(key, shape), randn, randint, bernoulli",
     "rand_like randn_like randint randint_like bernoulli normal normal_functional uniform random multinomial poisson "
     "binomial exponential cauchy geometric log_normal rrelu_with_noise fractional_max_pool2d fractional_max_pool3d"),
    ("how many elements the result has depends on numbers; use where, or sums with a mask",
     "nonzero_static nonzero_numpy argwhere masked_select unique_dim unique_consecutive unique_dim_consecutive unique unique2 "
     "repeat_interleave nms"),
    ("how many elements the result has depends on numbers; a sum of one_hot(x, n) counts n of them, as bincount(x, n) of the "
     "language does", "bincount"),
    ("complex numbers have no dtype", "fft_c2c fft_r2c fft_c2r complex polar real imag angle conj conj_physical view_as_real "
     "view_as_complex stft istft"),
    ("the language has no decompositions of matrices and no solvers; compute it outside of the graph, and make it an input",
     "cholesky cholesky_inverse cholesky_solve triangular_solve lu_unpack lu_solve geqrf orgqr ormqr linalg_cholesky_ex "
     "linalg_det linalg_slogdet linalg_eig linalg_eigh linalg_eigvals linalg_householder_product linalg_inv_ex linalg_ldl_factor_ex "
     "linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_qr linalg_solve_ex "
     "linalg_solve_triangular linalg_svd"),
    ("a function of numbers that has no spelling; a series of arithmetic computes it",
     "digamma polygamma igamma igammac i0 zeta nextafter frexp gcd lcm special_i0e special_i1 special_i1e special_ndtri "
     "special_log_ndtr special_erfcx special_zeta special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 "
     "special_bessel_y1 special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 "
     "special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 "
     "special_spherical_bessel_j0"),
    ("tensors with a scale are those of a library; write the arithmetic: round, clamp, and a product",
     "quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize fake_quantize_per_tensor_affine_cachemask "
     "fake_quantize_per_channel_affine_cachemask"),
    ("tensors are dense", "sparse_coo_tensor to_sparse to_dense coalesce sparse_mask sparse_compressed_tensor"),
    ("a loss over alignments has no spelling; train outside of the graph", "ctc_loss"),
]
NO_PACKET = {name: why for why, names in NEEDED for name in names.split()}


def why_not(op):
    """Why an op has no row: what would be needed."""
    packet = op.split(".")[0]
    return NO_ROW.get(op) or NO_PACKET.get(packet.strip("_")) or (
        "it has no row in the table of fusec/aten.py; needed are a row there, or the same in PyTorch's ops that have one, "
        "which docs/results/torch-ops.md lists")


# Functions that the language's library lacks: a source that uses one has it above its graph.
DEFS = {
    "log_gamma": """# log |gamma(x)|: Stirling's series in f64, 10 or more from 0; below 1/2 by reflection.
def log_gamma(x) {
  z = cast(x, f64)
  w = where(z < 0.5, 1 - z, z)
  y = where(w < 20, w + 10, w)
  r = 1 / (y * y)
  series = (((r / 1188 - 1.0 / 1680) * r + 1.0 / 1260) * r - 1.0 / 360) * r + 1.0 / 12
  above = (y - 0.5) * log(y) - y + 0.91893853320467274178 + series / y
  product = loop k in 0:10 with p = 1.0 { return p * (w + k) }
  positive = above - where(w < 20, log(product), 0.0)
  mirrored = 1.14472988584940017414 - log(abs(sin(3.14159265358979323846 * (z - round(z))))) - positive
  return cast(where(abs(z) == inf, inf, where(z < 0.5, mirrored, positive)), dtype(x))
}
""",
    "erf_inverse": """# The number whose erf is x: an estimate, and four of Newton's steps in f64.
def erf_inverse(x) {
  z = cast(x, f64)
  w = log((1 - z) * (1 + z))
  t = 4.33074675078 + w / 2
  near = sign(z) * sqrt(sqrt(t * t - w / 0.147) - t)
  y = loop k in 0:4 with y = near { return y - (erf(y) - z) * 0.88622692545275801365 * exp(y * y) }
  return cast(where(abs(z) == 1, z * inf, y), dtype(x))
}
""",
}


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


def literal(value, dtype):
    """A number of Python beside tensors of a dtype, as PyTorch casts it: integers wrap, and what is tiny in f16 is 0."""
    if isinstance(value, str):
        return value
    if dtype == "bool":
        return flag(value)
    if dtype[0] in "iu" and float(value).is_integer():
        n_bits, is_signed = int(dtype[1:]), dtype[0] == "i"
        low = -(1 << n_bits - 1) if is_signed else 0
        return number((int(value) - low) % (1 << n_bits) + low)
    value = int(value) if isinstance(value, bool) else value
    return "0.0" if is_tiny(value, dtype) else number(value)


def is_tiny(value, dtype):
    return value != 0 and dtype == "f16" and abs(value) <= 2.0 ** -25


# Bools in arithmetic and in order are the numbers 0 and 1 to PyTorch, and a result of bools is whether it is not 0. The
# language has neither, so such ops compute with u8.

def in_numbers(dtype):
    return "u8" if dtype == "bool" else dtype


def of_numbers(x):
    return x.to(in_numbers(x.dtype))


def from_numbers(text, dtype):
    return f"cast({text}, bool)" if dtype == "bool" else text


def of_extent(extent, dtype):
    """An expression over dims, which is known only at run time, as a tensor of rank 0."""
    text = f"iota([{extent} + 1], dtype=i64)[{extent}]"
    return text if dtype == "i64" else f"cast({text}, {dtype})"


def constant(value, dtype):
    if hasattr(value, "to"):
        return str(value.to(dtype))
    return of_extent(value, dtype) if isinstance(value, str) else f"const({literal(value, dtype)}, {dtype})"


def beside(value, out):
    """An operand in the dtype of the result; a number takes the dtype of what is beside it."""
    if hasattr(value, "to"):
        return str(value.to(out))
    if isinstance(value, str):
        return of_extent(value, out)
    return literal(value, out)


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
        OPS[op + ".default"] = lambda out, x, word=word: from_numbers(f"{word}({x.to(in_numbers(out.dtype))})", out.dtype)


for _name in ("floor", "ceil", "round", "trunc"):
    OPS[_name + ".default"] = lambda out, x, word=_name: f"{word}({x})" if x.is_float else str(x)
same_name("abs sign neg relu exp exp2 log log2 log10 log1p expm1 sqrt rsqrt sin cos tan asin acos atan "
          "sinh cosh tanh asinh acosh atanh erf sigmoid silu mish hardswish hardsigmoid relu6 "
          "logsigmoid=log_sigmoid softsign selu")
for _name in ("isnan", "isinf"):
    OPS[_name + ".default"] = lambda out, x, word=_name: f"{word}({x})" if x.is_float else f"{x} != {x}"


@row("erfc.default", "special_erfc.default")
def _(out, x):
    return f"cast(1.0 - erf({x.to('f64')}), {out.dtype})"  # in f32 little would be left of small results


@row("erfinv.default", "special_erfinv.default")
def _(out, x):
    return f"erf_inverse({x.to(out.dtype)})"


@row("copysign.Tensor", "copysign.Scalar")
def _(out, a, b):
    """The sign is a bit, which -0.0 and NaN have too."""
    size = f"abs({a.to(out.dtype)})"
    if not hasattr(b, "to"):
        return f"-{size}" if math.copysign(1, b) < 0 else size
    n_bits = 16 if out.dtype in ("f16", "bf16") else out.dtype[1:]
    return f"where(bitcast({b.to(out.dtype)}, i{n_bits}) < 0, -{size}, {size})"


@row("lgamma.default")
def _(out, x):
    return f"log_gamma({x.to(out.dtype)})"


def binary(op, spell):
    is_logic = op in ("bitwise_and", "bitwise_or", "bitwise_xor")
    def write(out, a, b, alpha=1):
        numbers = [v for v in (a, b, alpha) if isinstance(v, float)]
        dtype = "f32" if any(is_tiny(v, out.dtype) for v in numbers) else out.dtype if is_logic else in_numbers(out.dtype)
        b = beside(b, dtype) if alpha == 1 else f"({beside(b, dtype)} * {literal(alpha, dtype)})"
        text = spell.format(a=beside(a, dtype), b=b)
        return text if dtype == out.dtype else f"cast({text}, {out.dtype})"
    for kind in ("Tensor", "Scalar", "Tensor_Scalar", "Scalar_Tensor", "default"):
        OPS[f"{op}.{kind}"] = write


for _op, _spell in [("add", "{a} + {b}"), ("sub", "{a} - {b}"), ("rsub", "{b} - {a}"), ("mul", "{a} * {b}"),
                    ("fmod", "{a} % {b}"), ("maximum", "maximum({a}, {b})"), ("minimum", "minimum({a}, {b})"),
                    ("atan2", "atan2({a}, {b})"), ("bitwise_and", "{a} & {b}"), ("bitwise_or", "{a} | {b}"),
                    ("bitwise_xor", "{a} ^ {b}"), ("bitwise_left_shift", "{a} << {b}"),
                    ("bitwise_right_shift", "{a} >> {b}"), ("hypot", "hypot({a}, {b})"), ("div", "{a} / {b}")]:
    binary(_op, _spell)


for _kind in ("Tensor", "Scalar"):
    OPS[f"__lshift__.{_kind}"] = OPS["bitwise_left_shift.Tensor"]
    OPS[f"__rshift__.{_kind}"] = OPS["bitwise_right_shift.Tensor"]


def compare(op, sign):
    def write(out, a, b):
        dtype = in_numbers(common(a, b))
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


@row("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def _(out, a, b):
    return remainder(out, a.to(out.dtype) if hasattr(a, "to") else constant(a, out.dtype), beside(b, out.dtype) if hasattr(b, "to") else constant(b, out.dtype))


@row("div.Tensor_mode", "div.Scalar_mode")
def _(out, a, b, rounding_mode=None):
    a, b = beside(a, out.dtype), beside(b, out.dtype) if hasattr(b, "to") else constant(b, out.dtype)
    if rounding_mode == "floor":
        return f"floor_divide({a}, {b})"
    is_cut = rounding_mode == "trunc" and out.dtype[0] not in "iu"
    return f"trunc({a} / {b})" if is_cut else f"{a} / {b}"


def power(x, n):
    """x to the n, by squares."""
    if n == 1:
        return x
    half = power(x, n // 2)
    return f"({half} * {half})" if n % 2 == 0 else f"({half} * {half} * {x})" if n > 3 else f"({x} * {x} * {x})"


@row("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _(out, a, b):
    if b in (1, 2, 3) and not hasattr(b, "to"):
        return " * ".join([beside(a, out.dtype)] * int(b))
    if out.dtype[0] in "iu":
        require(isinstance(b, int) and 0 <= b <= 64, "pow of integers takes an exponent that is a number from 0 to 64; "
                "cast to a float before")
        return power(f"{a.to(out.dtype)}", b) if b else f"full({shape(out.shape)}, 1, {out.dtype})"
    if b == 0.5:
        return f"sqrt({beside(a, out.dtype)})"
    return f"pow({beside(a, out.dtype)}, {beside(b, out.dtype)})"


@row("reciprocal.default")
def _(out, x):
    return f"1.0 / {x.to(out.dtype)}"


def bound(value, dtype):
    """A number beyond an integer's range is the end of the range."""
    if dtype[0] in "iu" and isinstance(value, (int, float)):
        n_bits = int(dtype[1:])
        low, high = (0, (1 << n_bits) - 1) if dtype[0] == "u" else (-(1 << n_bits - 1), (1 << n_bits - 1) - 1)
        value = min(max(value, low), high)
    return beside(value, dtype)


@row("clamp.default", "clamp.Tensor", "hardtanh.default")
def _(out, x, low=None, high=None):
    if low is None and high is None:
        low, high = -1.0, 1.0
    text = beside(x, out.dtype)
    text = text if low is None else f"maximum({text}, {bound(low, out.dtype)})"
    return text if high is None else f"minimum({text}, {bound(high, out.dtype)})"


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
     "lift_fresh.default", "contiguous.default")
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
    text = flag(value) if out.dtype == "bool" and not hasattr(value, "to") else constant(value, out.dtype)
    return f"expand({text}, {shape(out.shape)})" if out.shape else text


@row("empty.memory_format", "empty_strided.default", "empty_permuted.default", "new_empty_strided.default")
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
        OPS[f"{_word}.{_kind}"] = lambda out, x, dims=None, keep=False, word=_word: (
            f"{word}({x}{over(x, dims, keep)})" if out.dtype == "bool" else f"cast({word}({x}{over(x, dims, keep)}), {out.dtype})")


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


@row("var_mean.correction")
def _(out, x, dims=None, correction=None, keepdim=False):
    correction = 1 if correction is None else correction
    return [f"var({x}{over(x, dims, keepdim)}, correction={correction})", f"mean({x}{over(x, dims, keepdim)})"]


for _word in ("cumsum", "cumprod", "logcumsumexp"):
    OPS[_word + ".default"] = lambda out, x, dim, dtype=None, word=_word: (
        f"{word}({x.to(out.dtype)}, axis={axes(x, dim)[0]})" if x.rank else str(x.to(out.dtype)))
for _word in ("cummax", "cummin"):
    OPS[_word + ".default"] = lambda out, x, dim, word=_word: [
        f"{word}({x}, axis={axes(x, dim)[0]})", lambda: last_best(word, x, axes(x, dim)[0])]


def last_best(word, x, axis):
    """The index of the largest or smallest element up to each; of equal ones, and of NaNs, the last."""
    best = f"{word}({x}, axis={axis})"
    is_best = f"{x} == {best} || {x} != {x}" if x.is_float else f"{x} == {best}"
    at = f"iota({shape(x.shape)}, axis={axis}, dtype=i32)"
    return f"cast(cummax(where({is_best}, {at}, const(0, i32)), axis={axis}), i64)"


@row("sort.default", "sort.stable")
def _(out, x, *args, dim=-1, descending=False, stable=False):
    dim, descending = (list(args) + [dim, descending][len(args):])[:2]
    text = f"sort({x}, axis={axes(x, dim)[0]}, descending={flag(descending)})"
    return [f"{text}[0]", f"cast({text}[1], i64)"]


@row("kthvalue.default")
def _(out, x, k, dim=-1, keepdim=False):
    axis = axes(x, dim)[0]
    at = at_axis(x, axis, f"{k - 1}:{k}" if keepdim else str(k - 1))
    text = f"sort({x}, axis={axis})"
    return [f"{text}[0][{at}]", f"cast({text}[1][{at}], i64)"]


@row("median.dim")
def _(out, x, dim, keepdim=False):
    axis = axes(x, dim)[0]

    def places():
        """That of the median in sorted order; where there is a NaN, the first."""
        n = x.shape[axis]
        middle = (n - 1) // 2 if isinstance(n, int) else f"({n} - 1) / 2"
        at = at_axis(x, axis, f"{middle}:{middle} + 1" if keepdim else f"{middle}")
        order = f"argsort({x}, axis={axis})[{at}]"
        if x.is_float:
            order = f"where(any({x} != {x}{over(x, axis, keepdim)}), argmax({x}{over(x, axis, keepdim)}), {order})"
        return f"cast({order}, i64)"

    return [f"median({x}, axis={axis}, keep={flag(keepdim)})", places]


@row("histc.default")
def _(out, x, bins=100, low=0, high=0):
    require(low != high, "without a range it is that of the numbers; name min and max")
    return f"cast(histc({x}, {bins}, {number(low)}, {number(high)}), {out.dtype})"


@row("searchsorted.Tensor")
def _(out, sequence, values, out_int32=False, right=False, side=None, sorter=None):
    require(sorter is None, "a sorter has no spelling; sort the sequence before")
    dtype = common(sequence, values)
    return f"cast(searchsorted({sequence.to(dtype)}, {values.to(dtype)}, right={flag(right or side == 'right')}), {out.dtype})"


@row("bucketize.Tensor")
def _(out, x, boundaries, out_int32=False, right=False):
    dtype = common(x, boundaries)
    return f"cast(bucketize({x.to(dtype)}, {boundaries.to(dtype)}, right={flag(right)}), {out.dtype})"


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


@row("roll.default")
def _(out, x, shifts, dims=None):
    return f"roll({x}, {shape(shifts)}, {axes(x, dims)})" if dims else f"roll({x}, {shape(shifts)})"


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


def spread(x, source, axis, begin, step):
    """The elements of `source`, from `begin` on and `step` apart along the axis, in place of those of `x`."""
    at = f"iota({shape([x.shape[axis]])}) - {begin}"
    n = source.shape[axis]
    is_there = f"({at}) % {step} == 0 && ({at}) >= 0 && ({at}) < {n} * {step}"
    line = shape([x.shape[k] if k == axis else 1 for k in range(x.rank)])
    found = f"gather({source.to(x.dtype)}, clamp(({at}) / {step}, 0, {n} - 1), axis={axis})"
    return f"where(reshape({is_there}, {line}), {found}, {x})"


@row("slice_scatter.default")
def _(out, x, source, dim=0, start=None, end=None, step=1):
    axis = dim % x.rank
    begin = place(x, axis, start or 0)
    if step != 1:
        require(all(isinstance(n, int) for n in (x.shape[axis], source.shape[axis], begin)), "steps take a fixed extent")
        return spread(x, source, axis, begin, step)
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


@row("unfold.default")
def _(out, x, dim, size, step):
    if not x.rank:
        return f"reshape({x}, {shape(out.shape)})"
    axis = dim % x.rank
    taps = f"windows({x}, size=[{size}], axis=[{axis}], stride=[{step}])"
    rest = [k for k in range(x.rank + 1) if k != axis + 1]
    return f"transpose({taps}, perm={rest + [axis + 1]})"


def pads(x, pad):
    low, high = [0] * x.rank, [0] * x.rank
    for k in range(len(pad) // 2):
        low[x.rank - 1 - k], high[x.rank - 1 - k] = pad[2 * k], pad[2 * k + 1]
    return low, high


@row("constant_pad_nd.default")
def _(out, x, pad, value=0):
    low, high = pads(x, pad)
    positive = lambda list_: [max(n, 0) if isinstance(n, int) else n for n in list_]
    text = f"pad({x}, low={shape(positive(low))}, high={shape(positive(high))}, value={literal(value, x.dtype)})"
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
    if used != list(range(used[0], used[-1] + 1)):  # then the axes of the index come first
        order = used + [k for k in range(x.rank) if k not in used]
        x = Text(f"transpose({x}, perm={order})", [x.shape[k] for k in order])
        indices, used = [indices[k] for k in used], list(range(len(used)))
    at = flat_index(x, indices, used)
    flat = x if len(used) == 1 else f"reshape({x}, {shape(x.shape[:used[0]] + [-1] + x.shape[used[-1] + 1:])})"
    return f"gather({flat}, {at}, axis={used[0]})"


def scattered(word, x, dim, index, source, *rest):
    """PyTorch ignores what `source` has beyond the shape of `index`."""
    axis = dim % x.rank
    require(index.shape[:axis] + index.shape[axis + 1:] == x.shape[:axis] + x.shape[axis + 1:],
            "the index must have the extents of the input in all axes but this one")
    dtype = x.dtype
    if word != "scatter":  # which moves alone
        x, source = of_numbers(x), of_numbers(source)
    part = source if source.shape == index.shape else (
        f"slice({source}, begin={[0] * x.rank}, shape={shape(index.shape)})")
    text = f"{word}({', '.join(map(str, [x, axis, index, part, *rest]))})"
    return text if x.dtype == dtype else from_numbers(text, dtype)


OPS["scatter.src"] = lambda out, x, dim, index, src: scattered("scatter", x, dim, index, src)
OPS["scatter_add.default"] = lambda out, x, dim, index, src: scattered("scatter_add", x, dim, index, src)
OPS["scatter.value"] = lambda out, x, dim, index, value: (
    f"scatter({x}, {dim % x.rank}, {index}, full({shape(index.shape)}, {literal(value, x.dtype)}, {x.dtype}))")
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
    x, values = (of_numbers(x), of_numbers(values)) if accumulate else (x, values)
    places = broadcast([indices[k].shape for k in used])
    # The axes of the index first, as one.
    n, rest = len(places), [k for k in range(x.rank) if k not in used]
    others = [x.shape[k] for k in rest]
    wide, order = shape(places + others), list(range(n + len(rest)))  # of index tensors that are apart
    if used == list(range(first, last + 1)):
        wide = shape(x.shape[:first] + places + x.shape[last + 1:])
        order = [first + k for k in range(n)] + list(range(first)) + list(range(first + n, first + n + x.rank - last - 1))
    source = f"reshape(transpose(expand({values}, {wide}), perm={order}), {shape([-1] + others)})"
    flat = f"reshape(transpose({x}, perm={used + rest}), {shape([-1] + others)})"
    word = "index_add" if accumulate else "index_copy"
    put = f"{word}({flat}, 0, reshape({at}, [-1]), {source})"
    back = [(used + rest).index(k) for k in range(x.rank)]
    text = f"transpose(reshape({put}, {shape([x.shape[k] for k in used + rest])}), perm={back})"
    return from_numbers(text, out.dtype) if accumulate else text


@row("masked_scatter.default")
def _(out, x, mask, source):
    """The elements of `source`, one after the other, where the mask holds."""
    place = f"cumsum(cast(reshape(expand({mask}, {shape(x.shape)}), [-1]), i64), axis=0) - 1"
    found = f"gather(reshape({source}, [-1]), maximum({place}, 0), axis=0)"
    return f"where({mask}, reshape({found}, {shape(x.shape)}), {x})"


@row("_embedding_bag.default", "_embedding_bag_forward_only.default")
def _(out, weight, indices, offsets, by_frequency=False, mode=0, sparse=False, weights=None, has_last=False, padding=-1):
    require(padding < 0 and not by_frequency, "bags with a padding index or scaled by frequency have no spelling")
    n = out[0].shape[0]
    firsts = f"{offsets}[:{n}]" if has_last else str(offsets)
    bags = f"(searchsorted({firsts}, iota({shape(indices.shape)}, dtype={offsets.dtype}), right=true) - 1)"
    rows = f"gather({weight}, {indices}, axis=0)" + (f" * reshape({weights}, [-1, 1])" if weights is not None else "")
    count = f"reshape(segment_sum(ones({shape(indices.shape)}, dtype={weight.dtype}), {bags}, {n}), [-1, 1])"
    if mode == 2:
        return [f"where({count} > 0, segment_max({rows}, {bags}, {n}), const(0.0, {weight.dtype}))", None, None, None]
    total = f"segment_sum({rows}, {bags}, {n})"
    return [f"{total} / maximum({count}, 1)" if mode == 1 else total, None, None, None]


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


@row("_grouped_mm.default", "transformers.grouped_mm_fallback.default")
def _(out, a, b, ends=None, bias=None, out_dtype=None):
    """Each row of `a` times the matrix of its group; `ends` has the row behind each group."""
    require(ends is not None and a.rank == 2 and b.rank == 3 and bias is None and out_dtype is None,
            "groups are rows of a matrix, with a matrix of weights each")
    rows = f"iota([{a.shape[0]}], dtype={ends.dtype})"
    group = f"minimum(searchsorted({ends}, {rows}, right=true), {b.shape[0]} - 1)"
    product = f"reshape({a}, {shape([a.shape[0], 1, a.shape[1]])}) @ gather({b}, {group}, axis=0)"
    return f"reshape({product}, {shape(out.shape)})"


@row("addmm.default", "addmv.default")
def _(out, bias, a, b, beta=1, alpha=1):
    product = f"{a} @ {b}" if alpha == 1 else f"({a} @ {b}) * {number(alpha)}"
    return f"{product} + {bias}" if beta == 1 else f"{product} + {bias} * {number(beta)}"


@row("addbmm.default")
def _(out, bias, a, b, beta=1, alpha=1):
    product = f"sum({a} @ {b}, axis=0)" + ("" if alpha == 1 else f" * {number(alpha)}")
    return f"{product} + {bias}" if beta == 1 else f"{product} + {bias} * {number(beta)}"


@row("scaled_dot_product_attention.default")
def _(out, q, k, v, mask=None, dropout=0.0, is_causal=False, scale=None, enable_gqa=False):
    require(not dropout, "dropout draws random numbers; call eval()")
    args = [f"mask={mask}"] if mask is not None else []
    args += ["is_causal=true"] if is_causal else []
    args += [f"scale={number(scale)}"] if scale is not None else []
    args += ["enable_gqa=true"] if enable_gqa else []
    result = f"attention({', '.join([str(q), str(k), str(v)] + args)})"
    if mask is None:
        return result
    seen = str(mask) if mask.dtype == "bool" else f"{mask} > -inf"
    return f"where(any({seen}, axis={mask.rank - 1}, keep=true), {result}, 0)"  # a row without keys


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


def beyond_last_window(out, x, size, stride, padding, dilation):
    """The elements behind `x` that the last windows reach, which `ceil_mode` keeps; one number an axis."""
    n = len(size)
    require(all(isinstance(e, int) for e in x.shape[-n:]), "ceil_mode takes fixed extents")
    reach = lambda k: (out.shape[k - n] - 1) * stride[k] + dilation[k] * (size[k] - 1) + 1
    return [max(reach(k) - x.shape[k - n] - 2 * padding[k], 0) for k in range(n)]


def padded_behind(x, behind, value):
    none = [0] * (x.rank - len(behind))
    return f"pad({x}, low={none + [0] * len(behind)}, high={none + behind}, value={value})" if any(behind) else str(x)


def largest_places(x, size, stride, padding, dilation, behind):
    """For each window the place of its largest element, among those of the image: i64, as PyTorch counts them."""
    n, k = x.rank, len(size)
    require(all(isinstance(e, int) for e in x.shape[-k:]), "the places of maxima take fixed extents")
    low, high = [0] * (n - k) + padding, [0] * (n - k) + [p + b for p, b in zip(padding, behind)]
    image = f"pad({x}, low={low}, high={high}, value=-inf)" if any(low + high) else str(x)
    taps = f"windows({image}, size={size}, axis={list(range(n - k, n))}, stride={stride}, dilation={dilation})"
    count = [(x.shape[n - k + i] + low[n - k + i] + high[n - k + i] - dilation[i] * (size[i] - 1) - 1) // stride[i] + 1
             for i in range(k)]
    extents = x.shape[:n - k] + count
    tap = f"cast(argmax(reshape({taps}, {shape(extents + [-1])}), axis={n}), i64)"
    place, skipped = "", 1
    for i in reversed(range(k)):
        within = f"({tap} / {skipped} % {size[i]})"
        skipped *= size[i]
        at = f"(iota({shape(extents)}, axis={n - k + i}, dtype=i64) * {stride[i]} + {within} * {dilation[i]} - {padding[i]})"
        step = 1
        for extent in x.shape[n - k + i + 1:]:
            step *= extent
        place += f"{' + ' if place else ''}{at} * {step}"
    return place


def max_pooling(word, n):
    def write(out, x, size, stride=None, padding=0, dilation=1, ceil_mode=False):
        size, stride, padding, dilation = (each(v, n) for v in (size, stride or size, padding, dilation))
        behind = [0] * n
        if ceil_mode:
            require(x.is_float, "ceil_mode takes floats")
            behind = beyond_last_window(out[0], x, size, stride, padding, dilation)
        text = (f"{word}({padded_behind(x, behind, '-inf')}, {shape(size)}, stride={shape(stride)}, padding={shape(padding)}, "
                f"dilation={shape(dilation)})")
        return [text, lambda: largest_places(x, size, stride, padding, dilation, behind)]
    return write


def n_averaged(out, x, k, size, stride, padding, count_include_pad):
    """How many elements each window along an axis has, as i32[windows]."""
    begin = f"(iota([{out.shape[k]}]) * {stride} - {padding})"
    end = f"minimum({begin} + {size}, {x.shape[k] + (padding if count_include_pad else 0)})"
    return f"({end} - {begin if count_include_pad else f'maximum({begin}, 0)'})"


def average_pooling(word, n):
    def write(out, x, size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor=None):
        size, stride, padding = (each(v, n) for v in (size, stride or size, padding))
        behind = beyond_last_window(out, x, size, stride, padding, [1] * n) if ceil_mode else [0] * n
        plain = not any(behind) and divisor is None
        text = (f"{word}({padded_behind(x, behind, 0)}, {shape(size)}, stride={shape(stride)}, padding={shape(padding)}, "
                f"count_include_pad={flag(count_include_pad or not plain)})")
        n_taps = 1
        for extent in size:
            n_taps *= extent
        if plain:
            return text
        if divisor is not None:
            return f"{text} * {n_taps / divisor}"
        counts = [f"reshape({n_averaged(out, x, k - n, size[k], stride[k], padding[k], count_include_pad)}, "
                  f"{shape([-1] + [1] * (n - 1 - k))})" for k in range(n)]
        return f"{text} * ({n_taps}.0 / cast({' * '.join(counts)}, {x.dtype}))"
    return write


for _rank in (2, 3):
    OPS[f"max_pool{_rank}d_with_indices.default"] = max_pooling(f"max_pool{_rank}d", _rank)
for _rank in (1, 2, 3):
    OPS[f"avg_pool{_rank}d.default"] = average_pooling(f"avg_pool{_rank}d", _rank)
    OPS[f"_adaptive_avg_pool{_rank}d.default"] = OPS[f"adaptive_avg_pool{_rank}d.default"] = (
        lambda out, x, size, rank=_rank: f"adaptive_avg_pool{rank}d({x}, {shape(size)})")


for _rank in (2, 3):
    OPS[f"adaptive_max_pool{_rank}d.default"] = lambda out, x, size, rank=_rank: [
        f"adaptive_max_pool{rank}d({x}, {shape(size)})", None]


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
    return [f"batchnorm({x}, {mean}, {variance}, {weight}, {bias}, eps={eps})", mean, f"rsqrt({variance} + {eps})"]


def statistics(x, text, over_axes, eps, extents):
    """The mean, and 1 over the root of the variance, as layer and group norm give them to the backward pass."""
    mean, variance = f"mean({text}, axis={over_axes})", f"var({text}, axis={over_axes})"
    return [f"reshape({mean}, {shape(extents)})", f"reshape(rsqrt({variance} + {eps}), {shape(extents)})"]


@row("native_layer_norm.default")
def _(out, x, normalized, weight, bias, eps):
    last = list(range(x.rank - len(normalized), x.rank))
    ones = lambda usual: f"full({shape(normalized)}, {usual}, {x.dtype})"
    return [f"layernorm({x}, {weight or ones(1)}, {bias or ones(0)}, "
            f"axis={last if len(last) > 1 else last[0]}, eps={eps})", *statistics(x, x, last, eps, out[1].shape)]


def in_groups(x, n, c, hw, groups):
    return f"reshape({x}, {shape([n, groups, c // groups, hw])})"


@row("native_group_norm.default")
def _(out, x, weight, bias, n, c, hw, groups, eps):
    weight, bias = per_channel(weight, 1, c, x.dtype), per_channel(bias, 0, c, x.dtype)
    return [f"groupnorm({x}, {groups}, {weight}, {bias}, eps={eps})",
            *statistics(x, in_groups(x, n, c, hw, groups), [2, 3], eps, [n, groups])]


# ---- distances ----

def distance(a, b, p):
    """Along the last axis."""
    apart = f"abs({a} - {b})"
    if p == 0:
        return f"sum(cast({apart} != 0, f32), axis=-1)"
    if p == 1 or p == float("inf"):
        return f"{'sum' if p == 1 else 'max'}({apart}, axis=-1)"
    return f"sqrt(sum({apart} * {apart}, axis=-1))" if p == 2 else f"pow(sum(pow({apart}, {p}), axis=-1), {1 / p})"


@row("_cdist_forward.default")
def _(out, a, b, p, mode=None):
    column = shape(a.shape[:-1] + [1, a.shape[-1]])
    line = shape(b.shape[:-2] + [1] + b.shape[-2:])
    return f"cast({distance(f'reshape({a}, {column})', f'reshape({b}, {line})', p)}, {out.dtype})"


@row("_pdist_forward.default")
def _(out, x, p=2):
    """Pairs of rows in order: (0, 1), (0, 2), .., (1, 2), .."""
    n = x.shape[0]
    require(isinstance(n, int) and n <= 256, "distances of pairs take at most 256 rows, a fixed number")
    parts = [f"cast({distance(f'{x}[{i + 1}:]', f'{x}[{i}:{i + 1}]', p)}, {out.dtype})" for i in range(n - 1)]
    return f"concat([{', '.join(parts)}], axis=0)" if len(parts) > 1 else parts[0]


# ---- backward passes ----

def normalized_backward(grad, z, rstd, over_axes):
    """The gradient before a norm, from that of what it gives; z: the normalized tensor."""
    mean = lambda text: f"mean({text}, axis={over_axes}, keep=true)"
    return f"({grad} - {mean(grad)} - {z} * {mean(f'({grad}) * {z}')}) * {rstd}"


@row("native_layer_norm_backward.default")
def _(out, grad, x, normalized, mean, rstd, weight, bias, mask):
    last, before = list(range(x.rank - len(normalized), x.rank)), list(range(x.rank - len(normalized)))
    z = f"(({x} - {mean}) * {rstd})"
    inner = f"({grad} * {weight})" if weight is not None else str(grad)
    over_rows = lambda text: f"sum({text}, axis={before})" if before else text
    return [normalized_backward(inner, z, rstd, last), over_rows(f"{grad} * {z}"), over_rows(f"{grad}")]


@row("native_group_norm_backward.default")
def _(out, grad, x, mean, rstd, weight, n, c, hw, groups, mask):
    column = lambda text: f"reshape({text}, {shape([n, groups, 1, 1])})"
    z = f"(({in_groups(x, n, c, hw, groups)} - {column(mean)}) * {column(rstd)})"
    inner = in_groups(grad, n, c, hw, groups)
    scaled = f"({inner} * reshape({weight}, {shape([groups, c // groups, 1])}))" if weight is not None else inner
    over = lambda text: f"reshape(sum({text}, axis=[0, 3]), {shape([c])})"
    return [f"reshape({normalized_backward(scaled, z, column(rstd), [2, 3])}, {shape(x.shape)})",
            over(f"{inner} * {z}"), over(inner)]


def transposed_conv(x, weight, stride, padding, dilation, groups, extents):
    """The transposed convolution whose result has these extents."""
    n = len(stride)
    size = weight.shape[2:]
    require(all(isinstance(e, int) for e in extents + x.shape[2:]), "the backward pass takes fixed extents")
    reach = [(x.shape[2 + k] - 1) * stride[k] - 2 * padding[k] + dilation[k] * (size[k] - 1) + 1 for k in range(n)]
    return (f"conv_transpose{n}d({x}, {weight}, stride={stride}, padding={padding}, "
            f"output_padding={[e - r for e, r in zip(extents, reach)]}, groups={groups}, dilation={dilation})")


class Text:
    """An expression where a row expects a tensor."""

    def __init__(self, text, extents):
        self.text, self.shape, self.rank = text, extents, len(extents)

    def __str__(self):
        return self.text


@row("convolution_backward.default")
def _(out, grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    n = x.rank - 2
    stride, padding, dilation = each(stride, n), each(padding, n), each(dilation, n)
    require(not transposed, "the gradients of a transposed convolution have no spelling")
    require(all(isinstance(e, int) for e in x.shape), "the gradients of a convolution take fixed extents")
    of_x = transposed_conv(grad, weight, stride, padding, dilation, groups, x.shape[2:])
    # Images are the channels of the product: each channel of a group with each gradient.
    rest, taps, of_group = list(range(3, x.rank + 1)), weight.shape[2:], x.shape[1] // groups
    images = f"transpose(reshape({x}, {shape([x.shape[0], groups, of_group] + x.shape[2:])}), perm={[2, 1, 0] + rest})"
    images = f"reshape({images}, {shape([of_group, groups * x.shape[0]] + x.shape[2:])})"
    swap = [1, 0] + list(range(2, x.rank))
    product = (f"conv{n}d({images}, transpose({grad}, perm={swap}), stride={dilation}, padding={padding}, "
               f"dilation={stride}, groups={groups})")
    first = f"slice({product}, begin={[0] * x.rank}, shape={shape([of_group, weight.shape[0]] + taps)})"
    return [of_x, f"transpose({first}, perm={swap})", f"sum({grad}, axis={[0] + list(range(2, x.rank))})"]


@row("avg_pool2d_backward.default")
def _(out, grad, x, size, stride, padding, ceil_mode, count_include_pad, divisor):
    size, stride, padding = (each(v, 2) for v in (size, stride or size, padding))
    require(not ceil_mode and (count_include_pad or not any(padding)),
            "the gradient of an average pool takes neither ceil_mode nor an uncounted border")
    planes = Text(f"reshape({grad}, {shape([-1, 1] + grad.shape[-2:])})", [-1, 1] + grad.shape[-2:])
    share = Text(f"full({shape([1, 1] + size)}, {1 / (divisor or size[0] * size[1])}, {x.dtype})", [1, 1] + size)
    return f"reshape({transposed_conv(planes, share, stride, padding, [1, 1], 1, x.shape[-2:])}, {shape(x.shape)})"


@row("_adaptive_avg_pool2d_backward.default")
def _(out, grad, x):
    def shares(n_parts, n):
        """[parts, n]: how much of each element a part takes."""
        part, at = f"iota([{n_parts}, 1], axis=0)", f"iota([1, {n}], axis=1)"
        begin, end = f"({part} * {n} / {n_parts})", f"((({part} + 1) * {n} + {n_parts - 1}) / {n_parts})"
        return f"(cast(({at} >= {begin}) && ({at} < {end}), {x.dtype}) / cast({end} - {begin}, {x.dtype}))"

    (high, wide), (rows, columns) = grad.shape[-2:], x.shape[-2:]
    return f"transpose({shares(high, rows)}) @ {grad} @ {shares(wide, columns)}"


@row("max_pool2d_with_indices_backward.default")
def _(out, grad, x, size, stride, padding, dilation, ceil_mode, places):
    flat = lambda value: f"reshape({value}, {shape(value.shape[:-2] + [-1])})"
    zeros = f"zeros({shape(x.shape[:-2] + [x.shape[-2] * x.shape[-1]])}, dtype={x.dtype})"
    return f"reshape(scatter_add({zeros}, {x.rank - 2}, {flat(places)}, {flat(grad)}), {shape(x.shape)})"


@row("embedding_dense_backward.default")
def _(out, grad, indices, n_words, padding_idx, scale_by_frequency):
    require(not scale_by_frequency, "scale_grad_by_freq has no spelling")
    rows = f"reshape({grad}, {shape([-1, grad.shape[-1]])})"
    at = f"reshape({indices}, [-1])"
    kept = f"where(reshape({at} != {padding_idx}, [-1, 1]), {rows}, const(0.0, {grad.dtype}))" if padding_idx >= 0 else rows
    return f"index_add(zeros({shape(out.shape)}, dtype={out.dtype}), 0, {at}, {kept})"


# ---- images ----

def resize_by(mode, out, x, factors):
    """The axes one by one, whose extents are dims: the language multiplies no dim by a fraction."""
    text = x.to("f32" if x.dtype in ("f16", "bf16") and mode != "nearest" else x.dtype)
    for axis, factor in enumerate(factors, 2):
        how = f"{text}, {axis}, {out.shape[axis]}, {float(factor)}, false"
        if factor != 1:
            text = f"interpolate_nearest_by({how})" if mode == "nearest" else f"interpolate_between({how})"
    return f"cast({text}, {x.dtype})"


def resize(mode):
    def write(out, x, size, *args):
        scales, corners = args[-1], args[0] if len(args) == 2 else False
        scales = scales and [int(f) if float(f).is_integer() else f for f in scales]
        if scales and not corners and not all(isinstance(f, int) or isinstance(n, int) for f, n in zip(scales, x.shape[2:])):
            return resize_by(mode, out, x, scales)
        is_size = scales is None or (corners and not all(isinstance(f, int) for f in scales))
        how = f"size={shape(out.shape[2:])}" if is_size else f"scale_factor={shape(scales)}"
        return f'interpolate({x}, {how}, mode="{mode}"{", align_corners=true" if corners else ""})'
    return write


@row("col2im.default", "im2col_backward.default")
def _(out, x, extents, size, dilation, padding, stride):
    """The sum of windows that overlap: each tap is a channel, and goes to its place in the window."""
    size, dilation, padding, stride = (each(v, 2) for v in (size, dilation, padding, stride))
    n_taps = size[0] * size[1]
    n_windows = [(extents[k] + 2 * padding[k] - dilation[k] * (size[k] - 1) - 1) // stride[k] + 1 for k in range(2)]
    taps = Text(f"reshape({x}, {shape([-1, n_taps] + n_windows)})", [-1, n_taps] + n_windows)
    places = Text(f"reshape(eye({n_taps}, dtype={x.dtype}), {shape([n_taps, 1] + size)})", [n_taps, 1] + size)
    image = transposed_conv(taps, places, stride, padding, dilation, 1, extents)
    return f"reshape({image}, {shape(out.shape)})"


def shares(n_parts, n, factor, reach, weight):
    """[n_parts, n]: how much of each element a part takes, which lie `reach` elements to either side, or parts if these
    are wider; `weight` is the text of a function of how far away they are."""
    scale = 1 / factor if factor else n / n_parts
    wide = max(scale, 1.0)
    centre = f"(cast(iota([{n_parts}, 1], axis=0), f32) + 0.5) * {scale}"
    far = f"abs((cast(iota([1, {n}], axis=1), f32) + 0.5 - {centre}) * {1 / wide})"
    some = f"where({far} < {float(reach)}, {weight(far)}, 0.0)"
    return f"({some} / sum({some}, axis=1, keep=true))"


def cubic(far):
    near = f"(1.5 * {far} - 2.5) * {far} * {far} + 1"
    return f"where({far} < 1.0, {near}, ((-0.5 * {far} + 2.5) * {far} - 4) * {far} + 2)"


def antialiased(reach, weight):
    def write(out, x, size, align_corners=False, factors=None):
        require(not align_corners and all(isinstance(n, int) for n in x.shape[2:] + out.shape[2:]),
                "antialiased resizing takes fixed extents, and no align_corners")
        rows, columns = (shares(out.shape[2 + k], x.shape[2 + k], factors and factors[k], reach, weight) for k in (0, 1))
        return f"cast({rows} @ cast({x}, f32) @ transpose({columns}), {x.dtype})"
    return write


OPS["_upsample_bilinear2d_aa.vec"] = antialiased(1, lambda far: f"1.0 - {far}")
OPS["_upsample_bicubic2d_aa.vec"] = antialiased(2, cubic)
OPS["upsample_nearest2d.vec"] = resize("nearest")
OPS["upsample_bilinear2d.vec"] = resize("bilinear")


@row("grid_sampler_2d.default")
def _(out, x, grid, mode=0, padding=0, align_corners=False):
    modes, paddings = ["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]
    return (f'grid_sample({x}, {grid}, mode="{modes[mode]}", padding_mode="{paddings[padding]}", '
            f"align_corners={flag(align_corners)})")
