"""Workloads of the CPU table: a body in the graph language, its tensors, the same function over the
`ops` of cpu_contenders.py, and the same nodes in ONNX's text form. Weights are params, which an init
step of fusec packs. Peers get each tensor in every layout that they may be fastest with: weights
of products as [K, N] and [N, K], images with their channels first and last.
"""

import dataclasses
from typing import Callable, Optional


PEERS = ("torch", "compile", "xla", "ort")


@dataclasses.dataclass
class Group:
    """Workloads with one target: best peer's time over fusec's, geometric mean and worst."""
    title: str
    mean: Optional[float] = None
    worst: Optional[float] = None


GROUPS = {
    "products": Group("products of at least 0.2 ms", 1.0, 0.9),
    "few": Group("products of less than 0.2 ms"),
    "row": Group("one row", 1.0, 1.0),
    "rows": Group("16 rows", 1.5, 1.5),
    "forward": Group("feed-forward", 1.2, 1.2),
    "attention": Group("attention", 1.3, 1.3),
    "small": Group("graphs of small tensors", 5.0),
    "chain": Group("chains of kernels that may not fuse, beside PyTorch"),
    "bf16": Group("bf16, fast numerics", 0.9),
    "i8": Group("i8"),
    "convolutions": Group("drawn convolutions", 1.0, 0.6),
}


@dataclasses.dataclass
class Case:
    name: str
    group: str
    inputs: list  # shapes of x0, x1, ..
    params: list  # shapes of w0, w1, ..
    result: tuple
    body: str  # statements that define y
    function: Callable  # (ops, layout, *inputs, *params) -> y
    onnx: str = ""  # nodes that define y, of x0.., w0.. in the first layout
    dtype: str = "f32"
    out: str = ""  # dtype of the result, if it is another
    layouts: tuple = ("",)
    lay: Callable = lambda layout, tensors: tensors  # inputs and params as peers get them
    unlay: Callable = lambda layout, y: y  # a peer's result as fusec's
    variants: dict = dataclasses.field(default_factory=dict)  # more functions of PyTorch, by name
    peers: tuple = PEERS  # the others are not asked

    def source(self):
        def declared(name, dtype, extents):
            return f"{name}: {dtype}[" + ", ".join(map(str, extents)) + "]"
        inputs = ", ".join(declared(f"x{i}", self.dtype, s) for i, s in enumerate(self.inputs))
        params = "".join("  param " + declared(f"w{i}", self.dtype, s) + "\n"
                         for i, s in enumerate(self.params))
        result = declared("y", self.out or self.dtype, self.result)
        return f"graph g({inputs}) -> ({result}) {{\n{params}{self.body}}}\n"


def lay_weights(layout, tensors):
    """Matrices of weights behind one input as [N, K]."""
    if layout == "kn":
        return tensors
    return tensors[:1] + [t.t().contiguous() if t.dim() > 1 else t for t in tensors[1:]]


TURNED = {"layouts": ("kn", "nk"), "lay": lay_weights}


def product(m, k, n, dtype="f32", group="products"):
    return Case(f"relu(x @ w + b) {m}x{k}x{n}" + ("" if dtype == "f32" else f" {dtype}"),
                group if dtype == "f32" else dtype, [(m, k)], [(k, n), (n,)], (m, n),
                "  y = relu(x0 @ w0 + w1)\n",
                lambda ops, layout, x, w, b: ops.relu(ops.linear(x, w, b, layout)),
                "a = MatMul(x0, w0) b = Add(a, w1) y = Relu(b)", dtype, **TURNED)


def rows(m, k, n, group):
    return Case(f"x @ w {m}x{k}x{n}", group, [(m, k)], [(k, n)], (m, n), "  y = x0 @ w0\n",
                lambda ops, layout, x, w: ops.mm(x, w, layout), "y = MatMul(x0, w0)", **TURNED)


def bytes_product(m, k, n):
    return Case(f"x @ w {m}x{k}x{n} i8", "i8", [(m, k)], [(k, n)], (m, n),
                "  y = matmul(x0, w0, out=i32)\n",
                lambda ops, layout, x, w: ops.mm_i8(x, w, layout), "y = MatMulInteger(x0, w0)",
                "i8", "i32", peers=("torch", "xla", "ort"), **TURNED)


def feed_forward(m, d, h):
    def function(ops, layout, x, a, b, v, c):
        return ops.linear(ops.relu(ops.linear(x, a, b, layout)), v, c, layout)
    return Case(f"feed-forward {m}x{d}x{h}", "forward", [(m, d)], [(d, h), (h,), (h, d), (d,)],
                (m, d), "  y = relu(x0 @ w0 + w1) @ w2 + w3\n", function,
                "a = MatMul(x0, w0) b = Add(a, w1) c = Relu(b) d = MatMul(c, w2) y = Add(d, w3)",
                **TURNED)


def attention(h, n, d, is_online):
    scale = d ** -0.5
    shape = (h, n, d)
    body = "  y = softmax((x0 @ transpose(x1, perm=[0, 2, 1])) * %r) @ x2\n" % scale
    if is_online:
        body = "  online {\n  " + body + "  }\n"

    def function(ops, layout, q, k, v):
        return ops.batched(ops.softmax(ops.batched(q, ops.swap(k)) * scale, -1), v)
    nodes = ("t = Transpose <perm = [0, 2, 1]> (x1) a = MatMul(x0, t) "
             f"s = Constant <value = float {{{scale!r}}}> () b = Mul(a, s) "
             "c = Softmax <axis = -1> (b) y = MatMul(c, x2)")

    def sdpa(ops, layout, q, k, v):
        return ops.torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    return Case(f"attention {h}x{n}x{d}{' online' if is_online else ''}", "attention", [shape] * 3, [],
                shape, body, function, nodes, variants={"sdpa": sdpa} if is_online else {})


def tiny_mlp(m):
    def function(ops, layout, x, a, b, c, d, e, f):
        h = ops.relu(ops.linear(x, a, b, layout))
        h = ops.relu(ops.linear(h, c, d, layout))
        return ops.softmax(ops.linear(h, e, f, layout), -1)
    return Case(f"MLP 64-128-64-10, {m} rows", "small", [(m, 64)],
                [(64, 128), (128,), (128, 64), (64,), (64, 10), (10,)], (m, 10),
                "  y = softmax(relu(relu(x0 @ w0 + w1) @ w2 + w3) @ w4 + w5)\n", function,
                "a = MatMul(x0, w0) b = Add(a, w1) c = Relu(b) d = MatMul(c, w2) e = Add(d, w3) "
                "f = Relu(e) g = MatMul(f, w4) h = Add(g, w5) y = Softmax <axis = -1> (h)",
                **TURNED)


def norm(m, n):
    def function(ops, layout, x, g, b):
        c = x - ops.mean(x, -1)
        return ops.gelu(c * ops.rsqrt(ops.mean(c * c, -1) + 1e-5) * g + b)

    def fused(ops, layout, x, g, b):
        functional = ops.torch.nn.functional
        return functional.gelu(functional.layer_norm(x, x.shape[-1:], g, b), approximate="tanh")
    return Case(f"gelu(layernorm) {m}x{n}", "small", [(m, n)], [(n,), (n,)], (m, n),
                "  y = gelu_tanh(layernorm(x0, w0, w1))\n", function,
                "a = LayerNormalization <axis = -1, epsilon = 1e-5> (x0, w0, w1) "
                "y = Gelu <approximate = \"tanh\"> (a)", variants={"layer_norm": fused})


def residual(n):
    return Case(f"relu(x * w + b) + x of {n}", "small", [(n,)], [(n,), (n,)], (n,),
                "  y = relu(x0 * w0 + w1) + x0\n",
                lambda ops, layout, x, w, b: ops.relu(x * w + b) + x,
                "a = Mul(x0, w0) b = Add(a, w1) c = Relu(b) y = Add(c, x0)")


def convolution(drawn):
    """One that convolutions.py drew, with the bias and relu of its source."""
    def lay(layout, tensors):
        x, w, b = tensors
        if drawn.channels_last:
            x, w = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        x = x.permute(0, 2, 3, 1) if layout == "last" else x
        return [x.contiguous(), w.contiguous(), b]

    def unlay(layout, y):
        first = y.permute(0, 3, 1, 2) if layout == "last" else y
        return first.permute(0, 2, 3, 1) if drawn.channels_last else first

    def function(ops, layout, x, w, b):
        return ops.relu(ops.convolve(drawn, layout, x, w, b))
    op = "ConvTranspose" if drawn.is_transposed else "Conv"
    nodes = (f"a = {op} <strides = {[drawn.stride] * 2}, dilations = {[drawn.dilation] * 2}, "
             f"pads = {[drawn.padding] * 4}, group = {drawn.groups}> (x0, w0, w1) y = Relu(a)")
    x, w, y = drawn.shapes()
    return Case(drawn.name(), "convolutions", [x], [w, (drawn.columns,)], y,
                f"  y = relu({drawn.call('x0', 'w0', 'w1')})\n", function, nodes,
                layouts=("first", "last"), lay=lay, unlay=unlay)


def chain(n, steps):
    """What a launch costs. Peers that compile would make one kernel of it."""
    body = "  v0 = x0\n" + "".join(f"  fuse never {{\n    v{i + 1} = v{i} * 1.5 + 1.0\n  }}\n"
                                   for i in range(steps))

    def function(ops, layout, x):
        for _ in range(steps):
            x = x * 1.5 + 1.0
        return x
    return Case(f"chain of {steps} kernels of {n}", "chain", [(n,)], [], (n,),
                body + f"  y = v{steps}\n", function, peers=("torch",))


CASES = [
    product(1024, 1024, 1024), product(256, 4096, 4096), product(2048, 2048, 2048),
    product(333, 777, 1111), product(96, 512, 512, group="few"), product(64, 64, 64, group="few"),
    rows(1, 4096, 4096, "row"), rows(1, 512, 512, "few"), rows(16, 4096, 4096, "rows"),
    feed_forward(64, 1024, 4096), attention(8, 512, 64, False), attention(8, 512, 64, True),
    tiny_mlp(1), tiny_mlp(16), norm(16, 256), residual(1000),
    chain(64, 1), chain(64, 8), chain(65536, 8),
    product(1024, 1024, 1024, "bf16"), product(256, 4096, 4096, "bf16"),
    product(2048, 2048, 2048, "bf16"), product(333, 777, 1111, "bf16"),
    product(64, 4096, 4096, "bf16"),
    bytes_product(1024, 1024, 1024), bytes_product(512, 301, 777), bytes_product(256, 4096, 4096),
]
