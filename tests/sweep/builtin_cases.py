"""A case of each built-in function, beside NumPy. They are added to the cases of the ops."""
import numpy as np

from draw import ANY, DTYPES, FLOATS, NUMBERS, STORED, Case, compute, rounded, text_of
from op_cases import case, product_case

WIDE = {"f16": "f32", "bf16": "f32", "i8": "i32", "u8": "i32", "u16": "i32", "u32": "i64", "f8e4m3": "f32",
        "f8e5m2": "f32"}


# Sums of products.

def letters_of_terms(d, n):
    """The letters of each of n operands, drawn from few, so that most are shared; some stand twice in a term."""
    few = "abcdefgh"[:d.int(2, 6)]
    terms = ["".join(d.of(few) for _ in range(d.int(0 if n > 1 else 1, 4))) for _ in range(n)]
    return [t if d.flag(0.3) else "".join(dict.fromkeys(t)) for t in terms]


def matrix_terms(d, n):
    """The letters of a chain of products, with axes of the batch, one or two contracted axes and axes in any order."""
    lead, terms, links = "xyz"[:d.int(0, 2)], [], "abcdefghijklmnopqrst"
    at = 0
    for _ in range(n):
        own = links[at:at + d.int(1, 2)]
        at += len(own)
        terms.append(lead + own + links[at:at + d.int(1, 2)])
    return ["".join(t[k] for k in d.rng.permutation(len(t))) for t in terms]


def broadcast(d, terms, result, extents):
    """An `...` in some of the operands, and in the result: the extents that each has there."""
    others = [d.int(1, 4) for _ in range(d.int(1, 2))]
    own = [[1 if d.flag(0.3) else n for n in others[d.int(0, len(others)):]] if d.flag(0.7) else None for _ in terms]
    places = [d.int(0, len(t)) for t in terms]
    texts = [t if o is None else t[:p] + "..." + t[p:] for t, o, p in zip(terms, own, places)]
    at = d.int(0, len(result))
    return texts, result[:at] + "..." + result[at:], [
        [extents[c] for c in t] if o is None else [extents[c] for c in t[:p]] + o + [extents[c] for c in t[p:]]
        for t, o, p in zip(terms, own, places)]


def usual_result(terms):
    """The letters of a result that is not given."""
    return "".join(c for c in sorted(set("".join(terms))) if "".join(terms).count(c) == 1)


def stretched(texts, shapes, arrays):
    """The operands with axes of extent 1 stretched to what their letter has elsewhere."""
    joint = {}
    for text, shape in zip(texts, shapes):
        plain = text.replace("...", "." * (len(shape) - len(text.replace("...", ""))))
        for c, n in zip(plain, shape):
            joint[c] = max(joint.get(c, 1), n) if c != "." else 1
    made = []
    for text, shape, a in zip(texts, shapes, arrays):
        plain = text.replace("...", "." * (len(shape) - len(text.replace("...", ""))))
        made.append(np.broadcast_to(a, [n if c == "." else joint[c] for c, n in zip(plain, shape)]))
    return made


def einsum_shapes(d, n):
    """The text of the operands, of the result, and the shapes of the operands."""
    while True:
        terms = matrix_terms(d, n) if d.flag(0.7) else letters_of_terms(d, n)
        names = list(dict.fromkeys("".join(terms)))
        extents = {c: d.of([1, 2, 3, 3, 4, 5, 7]) for c in names}
        once = [c for c in names if "".join(terms).count(c) == 1 or d.flag(0.2)]
        result = "".join(once[k] for k in d.rng.permutation(len(once)) if not d.flag(0.1))
        if d.flag(0.25):
            texts, result, shapes = broadcast(d, terms, result, extents)
        else:
            texts, shapes = terms, [[extents[c] for c in t] for t in terms]
        if d.flag(0.15) and all(len(set(t)) == len(t) for t in terms):  # an axis of extent 1 stretches
            k = d.int(0, n - 1)
            shapes[k] = [1 if d.flag(0.4) else e for e in shapes[k]]
        elif d.flag(0.1) and "..." not in result:
            return texts, None, shapes
        if np.prod(list(extents.values()), dtype=np.int64) <= 20000 and len(result.replace("...", "")) <= 6:
            return texts, result, shapes


def operands_of(d, dtype, shapes, mixes):
    """Elements of a dtype, or, of bytes with a wide result, of both dtypes of bytes."""
    other = {"i8": "u8", "u8": "i8"}.get(dtype) if mixes else None
    dtypes = [other if other and d.flag() else dtype for _ in shapes]
    small = len(shapes) > 2 and not DTYPES[dtype].is_float
    arrays = [d.integers(t, s, 0 if t[0] == "u" else -2, 2) if small else d.numbers(t, s)
              for t, s in zip(dtypes, shapes)]
    return {"abcdefgh"[k]: (t, a) for k, (t, a) in enumerate(zip(dtypes, arrays))}


@case("einsum")
def einsum(d):
    n = d.of([1, 2, 2, 2, 2, 3, 3, 4])
    dtype = d.of(NUMBERS + STORED + ["f16", "bf16", "i8", "u8"])
    is_wide = dtype in STORED or (dtype in WIDE and d.flag())
    out = WIDE[dtype] if is_wide else dtype
    texts, result, shapes = einsum_shapes(d, n)
    inputs = operands_of(d, dtype, shapes, is_wide)
    kind = np.float64 if DTYPES[out].is_float else np.int64
    arrays = stretched(texts, shapes, [np.asarray(a, kind) for _, a in inputs.values()])
    shown = ",".join(texts) + ("" if result is None else "->" + result)
    reference = shown if result is not None else shown + "->" + usual_result(texts)
    wanted, sizes = np.einsum(reference, *arrays), np.einsum(reference, *map(np.abs, arrays))
    n_terms = int(np.max(np.einsum(reference, *map(np.ones_like, arrays)), initial=1))
    given = f", out={out}" if is_wide else ", precision=\"full\"" if dtype == "f32" and d.flag(0.1) else ""
    made = product_case(f'einsum("{shown}", {", ".join(inputs)}{given})', inputs, out, wanted, sizes, n_terms)
    if DTYPES[out].is_float:  # docs/OPS.md, `steps`
        size, n_steps = float(np.max(sizes, initial=0)), 2 * n - 1
        made.relative = 4 * n_steps * DTYPES[out].eps
        made.absolute = n_steps * (2 * (n_terms ** 0.5 + 8) * DTYPES[compute(out)].eps + DTYPES[out].eps) * size
        made.absolute += 2 * n_steps * DTYPES[out].tiny
    return made


# Literals and parts.

def listed(array, is_float):
    if array.ndim:
        return "[" + ", ".join(listed(a, is_float) for a in array) + "]"
    return text_of(float(array) if is_float else int(array))


@case("tensor")
def tensor(d):
    dtype, shape = d.of(NUMBERS + ["bool"] + STORED), [d.int(1, 5) for _ in range(d.int(1, 3))]
    is_float = DTYPES[dtype].is_float
    a = np.round(d.rng.normal(size=shape) * 8, 3) if is_float else d.numbers(dtype, shape)
    given = "" if dtype in ("f32", "i32") and d.flag() else f", {dtype}"
    return Case(f"tensor({listed(a, is_float)}{given})", {"unused": ("f32", np.zeros(1))},
                [(dtype, rounded(dtype, a))])


@case("split")
def split(d):
    dtype, shape = d.of(ANY), list(d.shape(1, 3, 60))
    axis = d.axis(len(shape)) if d.flag(0.8) else 0
    sizes = [d.int(1, 4)] * d.int(1, 4) if d.flag() else [d.int(0 if k else 1, 4) for k in range(d.int(1, 4))]
    shape[axis] = sum(sizes)
    a = d.wild(dtype, shape)
    parts = np.split(a, np.cumsum(sizes)[:-1], axis)
    given = len(sizes) if len(set(sizes)) == 1 and d.flag() else sizes
    along = "" if axis == 0 and d.flag() else f", axis={axis}"
    return Case(f"split(x, {text_of(given)}{along})" + ("[0]" if len(sizes) == 1 else ""), {"x": (dtype, a)},
                [(dtype, part) for part in parts])


# What is known while compiling.

def told(d, name):
    """A tensor beside what a function says of it: as text, and the number or the dtype."""
    shape = list(d.shape(1, 4, 200))
    axis, k = d.axis(len(shape)), d.int(1, 9)
    return shape, {
        "dim": (f"dim(x, {axis})", shape[axis]), "rank": ("rank(x)", len(shape)),
        "most": (f"most(dim(x, {axis}) * {k})", shape[axis] * k), "len": (f"len([{', '.join(['x'] * k)}])", k),
        "each": d.of([(f"each({k}, 3)[2]", k), (f"each([1, {k}], 2)[1]", k)]),
        "is_list": d.of([("1 if is_list([x]) else 0", 1), ("1 if is_list(x) else 0", 0)]),
        "kind": d.of([('1 if kind(x) == "tensor" else 0', 1), (f'1 if kind({k}) == "float" else 0', 0),
                      (f'1 if kind([{k}]) == "list" else 0', 1), ('1 if kind(none) == "none" else 0', 1)]),
        "error": (f'{k} if dim(x, {axis}) == {shape[axis]} else error("another extent")', k),
        "is_elementwise": d.of([
            ("1 if is_elementwise([x], maximum, takes_lists=false) else 0", 1),
            (f"1 if is_elementwise([ones([{k}, {k}])], matmul, takes_lists=false) else 0", 0)])}[name]


@case("dim", "rank", "most", "len", "each", "is_list", "kind", "error", "is_elementwise")
def fact(d, name):
    shape, (text, number) = told(d, name)
    a = d.numbers("i32", shape)
    return Case(f"x + ({text})", {"x": ("i32", a)}, [("i32", a + number)])


@case("dtype", "compute")
def dtype_of(d, name):
    dtype, shape = d.of(FLOATS), d.shape(1, 3, 200)
    a, b = d.wild(dtype, shape), d.floats("f64", shape)
    of = dtype if name == "dtype" else compute(dtype)
    wanted = rounded(of, b)
    return Case(f"where(x == x, cast(b, {name}(x)), 0)", {"x": (dtype, a), "b": ("f64", b)},
                [(of, np.where(np.isnan(a), 0, wanted))])
