"""Random cases: shapes, dtypes and contents, and numbers rounded as fusec's dtypes are.

Reference values are float64, int64 or bool arrays ("wide"); `rounded` makes a dtype's elements of them.
"""
import dataclasses
import hashlib

import numpy as np


@dataclasses.dataclass(frozen=True)
class Dtype:
    name: str
    numpy: type  # of the bits: of bf16 and 8-bit floats an integer
    digits: int = 0  # significant bits of a float, the implicit one included
    least: int = 0  # the exponent of the smallest normal float
    largest: float = 0  # the largest float
    saturates: bool = False

    @property
    def is_float(self):
        return self.digits > 0

    @property
    def eps(self):
        """The distance from 1 to the next float."""
        return 2.0 ** (1 - self.digits)

    @property
    def tiny(self):
        """The smallest subnormal float."""
        return 2.0 ** (self.least + 1 - self.digits)


DTYPES = {d.name: d for d in (
    Dtype("f64", np.float64, 53, -1022, np.finfo(np.float64).max),
    Dtype("f32", np.float32, 24, -126, 3.4028234663852886e38),
    Dtype("f16", np.float16, 11, -14, 65504.0), Dtype("bf16", np.uint16, 8, -126, 3.3895313892515355e38),
    Dtype("f8e4m3", np.uint8, 4, -6, 448.0, True), Dtype("f8e5m2", np.uint8, 3, -14, 57344.0),
    Dtype("bool", np.bool_), Dtype("i8", np.int8), Dtype("u8", np.uint8), Dtype("i16", np.int16),
    Dtype("u16", np.uint16),
    Dtype("i32", np.int32), Dtype("u32", np.uint32), Dtype("i64", np.int64))}
FLOATS = ["f64", "f32", "f16", "bf16"]
STORED = ["f8e4m3", "f8e5m2"]
INTEGERS = ["i32", "i64", "i8", "u8", "u16", "u32", "i16"]
NUMBERS = FLOATS + INTEGERS
ANY = NUMBERS + ["bool"] + STORED


def compute(name):
    """The dtype in which ops on a float are computed."""
    return "f64" if name == "f64" else "f32"


def round_float(dtype, wide):
    """Float64 numbers rounded once, to nearest, ties to even."""
    if dtype.digits == 53:
        return wide
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(wide)
        quantum = np.ldexp(1.0, np.maximum(exponent - 1, dtype.least) + 1 - dtype.digits)
        near = np.where(np.isfinite(wide), np.rint(wide / quantum) * quantum, wide)
        past = np.abs(near) > dtype.largest
        return np.where(past, np.copysign(dtype.largest if dtype.saturates else np.inf, near), near)


def rounded(name, wide):
    """Wide numbers as a dtype has them: floats rounded, integers wrapped."""
    dtype, wide = DTYPES[name], np.asarray(wide)
    if dtype.is_float:
        return round_float(dtype, wide.astype(np.float64))
    return wide != 0 if name == "bool" else wide.astype(np.int64).astype(dtype.numpy).astype(np.int64)


def encode(name, wide):
    """The elements of `rounded` numbers, as bits that NumPy can save, in row-major order."""
    dtype, wide = DTYPES[name], np.array(wide, order="C")
    if name == "bf16":
        bits = wide.astype(np.float32).view(np.uint32) >> 16
        return np.where(np.isnan(wide), 0x7FC0, bits).astype(np.uint16)
    if name not in STORED:
        return wide.astype(dtype.numpy)
    numbers = decode_all(name)
    codes = np.flatnonzero(~np.isnan(numbers))
    codes = codes[np.argsort(numbers[codes], kind="stable")]
    at = np.searchsorted(numbers[codes], np.where(np.isnan(wide), 0, wide))
    found = np.where(wide == 0, np.where(np.signbit(wide), 0x80, 0), codes[at])
    return np.where(np.isnan(wide), 0x7F if name == "f8e4m3" else 0x7E, found).astype(np.uint8)


def decode(name, bits):
    """The wide numbers of elements."""
    if name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if name in STORED:
        return decode_all(name)[bits]
    return bits.astype(np.float64) if DTYPES[name].is_float else bits if name == "bool" else bits.astype(np.int64)


def decode_all(name):
    """The numbers of all 256 codes of an 8-bit float."""
    code = np.arange(256)
    n = 3 if name == "f8e4m3" else 2
    bias = 7 if n == 3 else 15
    exponent, mantissa = code >> n & (15 if n == 3 else 31), code & (1 << n) - 1
    value = np.where(exponent, np.ldexp(1.0 + mantissa / (1 << n), exponent - bias),
                     np.ldexp(mantissa / (1 << n), 1 - bias))
    if n == 3:
        value = np.where(code & 127 == 127, np.nan, value)
    else:
        value = np.where(exponent == 31, np.where(mantissa, np.nan, np.inf), value)
    return np.where(code & 128, -value, value)


@dataclasses.dataclass
class Case:
    """An expression, or several statements, that binds `outputs`, and what these must be.

    An element may differ from the wanted one by `absolute` + `relative` * |wanted|. Where both are 0, it must be the
    wanted one, rounded.
    """
    text: str
    inputs: dict  # name: (dtype, wide)
    outputs: list  # of (dtype, wide)
    relative: float = 0.0
    absolute: float = 0.0
    batch: bool = False  # whether axis 0 of all inputs and outputs may be a dim
    more_on_cores: float = 0.0  # of `absolute`, where tensor cores multiply 8-bit floats

    def names(self):
        return ["y"] if len(self.outputs) == 1 else [f"y{k}" for k in range(len(self.outputs))]

    def body(self):
        return self.text if "\n" in self.text else f"  {', '.join(self.names())} = {self.text}"

    def source(self, graph, dim=None):
        """With `dim`, a name of a dim stands for axis 0."""
        def declared(name, dtype, array):
            extents = [str(n) for n in array.shape]
            if dim and extents:
                extents[0] = dim
            return f"{name}: {dtype}" + (f"[{', '.join(extents)}]" if extents else "")
        inputs = ", ".join(declared(n, d, a) for n, (d, a) in self.inputs.items())
        outputs = ", ".join(declared(n, d, np.asarray(a)) for n, (d, a) in zip(self.names(), self.outputs))
        return f"graph {graph}({inputs}) -> ({outputs}) {{\n{self.body()}\n}}\n"


EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 65, 100, 129]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1e-30, -1e-30, 1e30, -1e30, 65504.0, 1e-5, 20.0,
           -20.0, 88.8, -104.0]


class Draw:
    """The random choices of one case: equal seeds give equal cases."""

    def __init__(self, *seed):
        digest = hashlib.sha256(" ".join(map(str, seed)).encode()).digest()
        self.rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))

    def of(self, values):
        return values[int(self.rng.integers(len(values)))]

    def int(self, low, high):
        """Both included."""
        return int(self.rng.integers(low, high + 1))

    def flag(self, p=0.5):
        return bool(self.rng.random() < p)

    def shape(self, low=1, high=4, most=600):
        """`low` to `high` extents, of at most `most` elements in all."""
        while True:
            extents = tuple(self.of(EXTENTS) for _ in range(self.int(low, high)))
            if np.prod(extents, dtype=np.int64) <= most:
                return extents

    def axis(self, rank):
        """An axis, in either way of counting."""
        return self.int(-rank, rank - 1)

    def axes(self, rank):
        """Some axes as a list, one of them alone, or none for all."""
        kind = self.int(0, 2)
        if kind == 0:
            return None
        if kind == 1:
            return self.axis(rank)
        return sorted(int(k) for k in self.rng.permutation(rank)[:self.int(1, rank)])

    def floats(self, name, shape, scale=1.0, low=None, high=None):
        """Normal numbers, or with bounds uniform ones."""
        wide = self.rng.normal(size=shape) * scale if low is None else self.rng.uniform(low, high, size=shape)
        return rounded(name, wide)

    def ties(self, name, shape):
        """Few different numbers, with infinities and, rarely, NaN."""
        if not DTYPES[name].is_float:
            return self.integers(name, shape, -3 if name[0] == "i" else 0, 3)
        special = self.rng.random(shape) < 0.05
        few = self.rng.integers(-3, 4, size=shape) * 0.5
        nan = self.of([np.inf, -np.inf, np.nan, np.inf])
        return rounded(name, np.where(special, nan, few))

    def integers(self, name, shape, low=None, high=None):
        if name == "bool":
            return self.rng.random(shape) < 0.5
        info = np.iinfo(DTYPES[name].numpy)
        low, high = info.min if low is None else low, info.max if high is None else high
        return np.asarray(self.rng.integers(low, high, size=shape, endpoint=True, dtype=np.int64))

    def numbers(self, name, shape, scale=1.0):
        """Ordinary elements of any dtype."""
        if DTYPES[name].is_float:
            return self.floats(name, shape, scale)
        return self.integers(name, shape, *((0, 9) if name[0] == "u" else (-9, 9)) if name != "bool" else ())

    def wild(self, name, shape):
        """Elements of any dtype with those at its ends."""
        if not DTYPES[name].is_float:
            wide = self.integers(name, shape,
                                 *(() if self.flag() or name == "bool" else (0, 9) if name[0] == "u" else (-9, 9)))
            if name == "bool":
                return wide
            info = np.iinfo(DTYPES[name].numpy)
            ends = self.rng.choice(np.array([info.min, info.max, 0, 1]), size=shape)
            return np.where(self.rng.random(shape) < 0.1, ends, wide)
        exponents = self.rng.normal(size=shape) * self.of([0.5, 2, 8])
        wide = self.rng.normal(size=shape) * np.exp2(exponents) * self.of([1, 1, 30])
        special = self.rng.choice(np.array(SPECIAL), size=shape)
        return rounded(name, np.where(self.rng.random(shape) < 0.15, special, wide))


def text_of(value):
    """A Python value as the language writes it; the name of a dtype is the dtype."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text_of(v) for v in value) + "]"
    if isinstance(value, str):
        return value if value in DTYPES else f'"{value}"'
    return repr(value)


def call(function, *operands, **arguments):
    """A call as text: operands as they are, arguments as values."""
    given = [str(o) for o in operands] + [f"{k}={text_of(v)}" for k, v in arguments.items()]
    return f"{function}({', '.join(given)})"
