"""What a workload is: a source in the graph language, its tensors, and the same function for the
peers. Nothing here touches a device.

A function is written once over `ops`, which is torch or jax.numpy in one dress (contenders.py), and
is the reference too, in float64. The other functions are a peer's own best forms, over torch.
"""

import dataclasses
import math
from typing import Callable, Optional

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i32": 4}
PEERS = ("eager", "lt", "sdpa", "flex", "compile", "xla")


@dataclasses.dataclass
class Tensor:
    name: str
    dtype: str
    shape: tuple
    scale: float = 1.0  # standard deviation of its random values
    is_param: bool = False  # weights that the program may repack once, at its start; all sets share
    # them
    values: Optional[Callable] = None  # () -> its elements, in order, the same in every set

    def n_bytes(self):
        return math.prod(self.shape) * BYTES[self.dtype]

    def declared(self):
        extents = ", ".join(str(n) for n in self.shape)
        return f"{self.name}: {self.dtype}[{extents}]"


@dataclasses.dataclass
class Case:
    """One workload in one layout of its right operands."""
    layout: str
    source: str
    inputs: list
    outputs: list
    fn: Callable  # (ops, *inputs) -> tuple of outputs
    flops: float
    unit: str  # what bounds the arithmetic: "bf16", "tf32", "f32" or "vector"
    eager: Optional[Callable] = None  # (torch, *inputs) -> tuple
    lt: Optional[Callable] = None
    # Forms around PyTorch's attention, by name. The first word of the name is the backend that is
    # pinned: cudnn, flash or efficient.
    sdpa: dict = dataclasses.field(default_factory=dict)
    compiled: dict = dataclasses.field(default_factory=dict)  # the same, for torch.compile
    flex: Optional[Callable] = None  # (torch, *inputs), with its block mask as the last
    # By peer: (torch, *inputs) -> a tensor or a block mask that follows from inputs with `values`
    # alone. It is made once, is not timed, and is the last argument of the peer's functions.
    ready: dict = dataclasses.field(default_factory=dict)
    weights: dict = dataclasses.field(default_factory=dict)  # of params that are no inputs, by key

    def n_bytes(self):
        return sum(t.n_bytes() for t in self.inputs + self.outputs) + \
            sum(w.numel() * w.element_size() for w in self.weights.values())


@dataclasses.dataclass
class Workload:
    name: str
    build: Callable  # layout -> Case
    layouts: tuple = ("",)
    has_matmul: bool = False
    tolerance: float = 1e-2  # of the norm of the difference, over the norm of the reference
    target: Optional[float] = None  # at least: the best peer's time over ours
    share: Optional[float] = None  # at least: of what the best stream allows
    ptx_ms: float = 100.0  # source to PTX at most
    peers: tuple = PEERS  # the others are not asked


def text(name, inputs, outputs, body, head=""):
    """A file with one graph."""
    plain = ", ".join(t.declared() for t in inputs if not t.is_param)
    params = "".join(f'  param {t.declared()} = "{t.name}"\n' for t in inputs if t.is_param)
    results = ", ".join(t.declared() for t in outputs)
    lines = "".join(f"  {line}\n" for line in body)
    return f"{head}graph {name}({plain}) -> ({results}) {{\n{params}{lines}}}\n"


# A right operand lies as [K, N] or as [N, K]: `mm` hides which.
MM = {"kn": "def mm(x, w) = x @ w\n",
      "nk": "def mm(x, w) = x @ transpose(w, perm=[1, 0])\n"}
MM_TF32 = {"kn": 'def mm(x, w) = matmul(x, w, precision="tf32")\n',
           "nk": 'def mm(x, w) = matmul(x, transpose(w, perm=[1, 0]), precision="tf32")\n'}


def weight(name, k, n, dtype, layout, is_param=False):
    shape = (k, n) if layout == "kn" else (n, k)
    return Tensor(name, dtype, shape, 1 / math.sqrt(k), is_param)
