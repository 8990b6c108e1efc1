"""What is measured: the table of workloads, and the functions that make the rows of maps,
reductions, products and convolutions.
"""

import math

import attention
import decoder
from cases import MM, MM_TF32, Case, Tensor, Workload, text, weight

# ---- elementwise and reductions ----

def relu_map(n, dtype):
    def build(layout):
        inputs = [Tensor(name, dtype, (n,)) for name in "abcd"]
        outputs = [Tensor("y", dtype, (n,))]
        return Case(layout, text("map", inputs, outputs, ["y = relu(a * b + c) * d - a"]),
                    inputs, outputs, lambda o, a, b, c, d: (o.relu(a * b + c) * d - a,),
                    5.0 * n, "vector")
    return build


def softmax(rows, columns):
    def build(layout):
        inputs = [Tensor("x", "bf16", (rows, columns), 4)]
        outputs = [Tensor("y", "bf16", (rows, columns))]
        return Case(layout, text("rows_softmax", inputs, outputs, ["y = softmax(x * 0.5, axis=1)"]),
                    inputs, outputs, lambda o, x: (o.softmax(x * 0.5, 1),),
                    6.0 * rows * columns, "vector")
    return build


def layernorm(rows, columns):
    def build(layout):
        inputs = [Tensor("x", "bf16", (rows, columns)), Tensor("r", "bf16", (rows, columns)),
                  Tensor("w", "bf16", (columns,)), Tensor("b", "bf16", (columns,))]
        outputs = [Tensor("h", "bf16", (rows, columns)), Tensor("y", "bf16", (rows, columns))]

        def fn(o, x, r, w, b):
            h = x + r
            z = o.wide(h)
            d = z - o.mean(z, -1)
            scale = o.rsqrt(o.mean(d * d, -1) + 1e-5)
            return h, o.like(d * scale * o.wide(w) + o.wide(b), h)

        def eager(torch, x, r, w, b):
            h = x + r
            return h, torch.nn.functional.layer_norm(h, (columns,), w, b, 1e-5)
        return Case(layout, text("residual_layernorm", inputs, outputs,
                                 ["h = x + r", "y = layernorm(h, w, b, eps=1e-5)"]),
                    inputs, outputs, fn, 9.0 * rows * columns, "vector", eager)
    return build


def rmsnorm(rows, columns):
    def build(layout):
        inputs = [Tensor("x", "bf16", (rows, columns)), Tensor("w", "bf16", (columns,))]
        outputs = [Tensor("y", "bf16", (rows, columns))]

        def fn(o, x, w):
            z = o.wide(x)
            return (o.like(z * o.rsqrt(o.mean(z * z, -1) + 1e-5) * o.wide(w), x),)

        def eager(torch, x, w):
            return (torch.nn.functional.rms_norm(x, (columns,), w, 1e-5),)
        return Case(layout, text("rows_rmsnorm", inputs, outputs, ["y = rmsnorm(x, w, eps=1e-5)"]),
                    inputs, outputs, fn, 5.0 * rows * columns, "vector", eager)
    return build


def column_sum(rows, columns):
    def build(layout):
        inputs = [Tensor("x", "bf16", (rows, columns))]
        outputs = [Tensor("y", "f32", (columns,))]
        return Case(layout, text("column_sum", inputs, outputs,
                                 ["y = sum(cast(relu(x), f32), axis=0)"]),
                    inputs, outputs, lambda o, x: (o.sum_wide(o.relu(x), 0),),
                    2.0 * rows * columns, "vector",
                    lambda torch, x: (torch.relu(x).sum(0, dtype=torch.float32),))
    return build


# ---- matrix products ----

def activated(torch, name, x):
    return torch.relu(x) if name == "relu" else torch.nn.functional.gelu(x, approximate="tanh")


GELU = 'gelu({}, approximate="tanh")'


def gemm(m, n, k, dtype="bf16", activation="relu", residual=False, unit=None):
    """activation(x @ w + b), with a residual added where asked for. A unit of "tf32": everybody may
    round the operands to TF32."""
    def build(layout):
        inputs = [Tensor("x", dtype, (m, k)), weight("w", k, n, dtype, layout),
                  Tensor("b", dtype, (n,))]
        outputs = [Tensor("y", dtype, (m, n))]
        form = "relu({})" if activation == "relu" else GELU
        body = "y = " + form.format("mm(x, w) + b")
        if residual:
            inputs.append(Tensor("r", dtype, (m, n)))
            body += " + r"

        def kn(w):
            return w if layout == "kn" else w.t()

        def fn(o, x, w, b, *r):
            y = getattr(o, activation)(o.mm(x, w, layout) + b)
            return (y + r[0] if residual else y,)

        def eager(torch, x, w, b, *r):
            y = activated(torch, activation, torch.addmm(b, x, kn(w)))
            return (y + r[0] if residual else y,)

        def lt(torch, x, w, b, *r):
            y = torch._addmm_activation(b, x, kn(w), use_gelu=activation == "gelu")
            return (y + r[0] if residual else y,)
        mm = MM_TF32 if unit == "tf32" else MM
        return Case(layout, text("gemm", inputs, outputs, [body], mm[layout]), inputs, outputs, fn,
                    2.0 * m * n * k, unit or dtype, eager, lt)
    return build


def mlp(tokens, width, hidden):
    def build(layout):
        inputs = [Tensor("x", "bf16", (tokens, width)),
                  weight("w1", width, hidden, "bf16", layout), Tensor("b1", "bf16", (hidden,)),
                  weight("w2", hidden, width, "bf16", layout), Tensor("b2", "bf16", (width,))]
        outputs = [Tensor("y", "bf16", (tokens, width))]

        def fn(o, x, w1, b1, w2, b2):
            return (x + (o.mm(o.gelu(o.mm(x, w1, layout) + b1), w2, layout) + b2),)

        def eager(torch, x, w1, b1, w2, b2):
            w1, w2 = (w1, w2) if layout == "kn" else (w1.t(), w2.t())
            return (x + torch.addmm(b2, activated(torch, "gelu", torch.addmm(b1, x, w1)), w2),)

        def lt(torch, x, w1, b1, w2, b2):
            w1, w2 = (w1, w2) if layout == "kn" else (w1.t(), w2.t())
            return (x + torch.addmm(b2, torch._addmm_activation(b1, x, w1, use_gelu=True), w2),)
        body = [f"h = {GELU.format('mm(x, w1) + b1')}", "y = x + (mm(h, w2) + b2)"]
        return Case(layout, text("mlp", inputs, outputs, body, MM[layout]), inputs, outputs, fn,
                    4.0 * tokens * width * hidden, "bf16", eager, lt)
    return build


def swiglu(tokens, width, hidden):
    def build(layout):
        inputs = [Tensor("x", "bf16", (tokens, width)),
                  weight("wg", width, hidden, "bf16", layout),
                  weight("wu", width, hidden, "bf16", layout),
                  weight("wd", hidden, width, "bf16", layout)]
        outputs = [Tensor("y", "bf16", (tokens, width))]

        def fn(o, x, wg, wu, wd):
            return (o.mm(o.silu(o.mm(x, wg, layout)) * o.mm(x, wu, layout), wd, layout),)
        body = ["y = mm(silu(mm(x, wg)) * mm(x, wu), wd)"]
        return Case(layout, text("swiglu", inputs, outputs, body, MM[layout]), inputs, outputs, fn,
                    6.0 * tokens * width * hidden, "bf16")
    return build


def blocks(n_blocks, batch, width, hidden, is_param=False):
    """Residual blocks h + (gelu(h @ w1 + b1) @ w2 + b2), one after the other."""
    def build(layout):
        inputs, body, h = [Tensor("x", "bf16", (batch, width))], [], "x"
        for i in range(n_blocks):
            inputs += [weight(f"w1_{i}", width, hidden, "bf16", layout, is_param),
                       Tensor(f"b1_{i}", "bf16", (hidden,), 1, is_param),
                       weight(f"w2_{i}", hidden, width, "bf16", layout, is_param),
                       Tensor(f"b2_{i}", "bf16", (width,), 1, is_param)]
            to = "y" if i == n_blocks - 1 else f"h{i}"
            inner = GELU.format(f"mm({h}, w1_{i}) + b1_{i}")
            body.append(f"{to} = {h} + (mm({inner}, w2_{i}) + b2_{i})")
            h = to
        outputs = [Tensor("y", "bf16", (batch, width))]

        def fn(o, h, *weights):
            for i in range(n_blocks):
                w1, b1, w2, b2 = weights[4 * i:4 * i + 4]
                h = h + (o.mm(o.gelu(o.mm(h, w1, layout) + b1), w2, layout) + b2)
            return (h,)

        def with_product(first):
            def run(torch, h, *weights):
                for i in range(n_blocks):
                    w1, b1, w2, b2 = weights[4 * i:4 * i + 4]
                    w1, w2 = (w1, w2) if layout == "kn" else (w1.t(), w2.t())
                    h = h + torch.addmm(b2, first(torch, b1, h, w1), w2)
                return (h,)
            return run
        eager = with_product(lambda torch, b, h, w: activated(torch, "gelu", torch.addmm(b, h, w)))
        lt = with_product(lambda torch, b, h, w: torch._addmm_activation(b, h, w, use_gelu=True))
        return Case(layout, text("blocks", inputs, outputs, body, MM[layout]), inputs, outputs, fn,
                    4.0 * n_blocks * batch * width * hidden, "bf16", eager, lt)
    return build


def tiny_mlp(batch):
    widths = (64, 128, 64, 10)

    def build(layout):
        inputs = [Tensor("x", "f32", (batch, 64))]
        for i in range(3):
            inputs += [weight(f"w{i}", widths[i], widths[i + 1], "f32", layout),
                       Tensor(f"b{i}", "f32", (widths[i + 1],))]
        outputs = [Tensor("p", "f32", (batch, 10))]

        def fn(o, x, w0, b0, w1, b1, w2, b2):
            h = o.relu(o.mm(x, w0, layout) + b0)
            h = o.relu(o.mm(h, w1, layout) + b1)
            return (o.softmax(o.mm(h, w2, layout) + b2, -1),)

        def with_product(product):
            def run(torch, x, w0, b0, w1, b1, w2, b2):
                w0, w1, w2 = (w if layout == "kn" else w.t() for w in (w0, w1, w2))
                h = product(torch, b1, product(torch, b0, x, w0), w1)
                return (torch.softmax(torch.addmm(b2, h, w2), -1),)
            return run
        eager = with_product(lambda torch, b, x, w: torch.relu(torch.addmm(b, x, w)))
        lt = with_product(lambda torch, b, x, w: torch._addmm_activation(b, x, w))
        body = ["h0 = relu(mm(x, w0) + b0)", "h1 = relu(mm(h0, w1) + b1)",
                "p = softmax(mm(h1, w2) + b2, axis=-1)"]
        flops = 2.0 * batch * (64 * 128 + 128 * 64 + 64 * 10)
        return Case(layout, text("tiny_mlp", inputs, outputs, body, MM[layout]), inputs, outputs,
                    fn, flops, "f32", eager, lt)
    return build


def conv1x1(images, height, width, c_in, c_out):
    def build(layout):
        shape = (images, height, width)
        inputs = [Tensor("x", "bf16", shape + (c_in,)), weight("w", c_in, c_out, "bf16", layout),
                  Tensor("b", "bf16", (c_out,))]
        outputs = [Tensor("y", "bf16", shape + (c_out,))]

        def fn(o, x, w, b):
            return (o.relu(o.mm(x, w, layout) + b),)

        def lt(torch, x, w, b):
            w = w if layout == "kn" else w.t()
            y = torch._addmm_activation(b, x.view(-1, c_in), w)
            return (y.view(*shape, c_out),)
        return Case(layout, text("conv1x1", inputs, outputs, ["y = relu(mm(x, w) + b)"],
                                 MM[layout]),
                    inputs, outputs, fn, 2.0 * images * height * width * c_in * c_out, "bf16",
                    lt=lt)
    return build


def conv3x3(images, height, width, c_in, c_out):
    """With a border of zeros: the product of each pixel's taps, side by side, with all weights."""
    def build(layout):
        inputs = [Tensor("x", "bf16", (images, height, width, c_in)),
                  weight("w", 9 * c_in, c_out, "bf16", layout), Tensor("b", "bf16", (c_out,))]
        outputs = [Tensor("y", "bf16", (images, height, width, c_out))]
        taps = ", ".join(f"p[:, {i}:{i + height}, {j}:{j + width}]"
                         for i in range(3) for j in range(3))
        body = ["p = pad(x, low=[0, 1, 1, 0], high=[0, 1, 1, 0], value=0)",
                f"y = relu(mm(concat([{taps}], axis=3), w) + b)"]

        def fn(o, x, w, b):
            return (o.relu(o.conv3x3(x, w if layout == "kn" else o.swap(w)) + b),)

        def eager(torch, x, w, b):
            w = w if layout == "kn" else w.t()
            w = w.view(3, 3, c_in, c_out).permute(3, 2, 0, 1)
            y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w, b, padding=1)
            return (torch.relu(y).permute(0, 2, 3, 1),)
        return Case(layout, text("conv3x3", inputs, outputs, body, MM[layout]), inputs, outputs,
                    fn, 18.0 * images * height * width * c_in * c_out, "bf16", eager)
    return build


BOTH = ("kn", "nk")


def product(name, build, **options):
    return Workload(name, build, BOTH, True, **options)


STREAM = {"target": 1.0, "share": 0.9}

TABLE = [
    Workload("map-f32-2^26", relu_map(1 << 26, "f32"), tolerance=1e-6, **STREAM),
    Workload("map-bf16-2^27", relu_map(1 << 27, "bf16"), **STREAM),
    Workload("map-f32-2^20", relu_map(1 << 20, "f32"), tolerance=1e-6, target=1.0),
    Workload("softmax-16384x4096", softmax(16384, 4096), target=1.2),
    Workload("softmax-256x131072", softmax(256, 131072), target=2.0),
    Workload("layernorm-16384x4096", layernorm(16384, 4096), **STREAM),
    Workload("rmsnorm-16384x8192", rmsnorm(16384, 8192), **STREAM),
    Workload("column-sum-8192", column_sum(8192, 8192), tolerance=1e-5, **STREAM),
    product("gemm-8192", gemm(8192, 8192, 8192), target=1.0),
    product("gemm-4096", gemm(4096, 4096, 4096), target=1.0),
    product("gemm-2048", gemm(2048, 2048, 2048), target=1.0),
    product("gemm-gelu-residual-4096", gemm(4096, 4096, 4096, "bf16", "gelu", True), target=1.1),
    product("gemm-ragged", gemm(4000, 4104, 4072), target=1.0),
    product("gemm-m256", gemm(256, 8192, 8192), target=1.0),
    product("gemm-m16", gemm(16, 8192, 8192), target=1.0),
    product("gemm-m1", gemm(1, 8192, 8192), target=1.05),
    product("gemm-f32-4096", gemm(4096, 4096, 4096, "f32"), tolerance=1e-5, target=0.95),
    product("gemm-tf32-4096", gemm(4096, 4096, 4096, "f32", unit="tf32"), target=1.0),
    product("mlp-4096", mlp(4096, 4096, 16384), target=1.02),
    product("swiglu-4096", swiglu(4096, 4096, 11008), target=1.02),
    product("blocks-12-batch1", blocks(12, 1, 2048, 8192), target=1.25),
    product("blocks-12-batch1-params", blocks(12, 1, 2048, 8192, True), target=1.25),
    product("tiny-mlp-batch1", tiny_mlp(1), tolerance=1e-5, target=3.0),
    product("conv1x1", conv1x1(64, 56, 56, 256, 64)),
    product("conv3x3-64", conv3x3(64, 56, 56, 64, 64)),
    product("conv3x3-256", conv3x3(64, 28, 28, 256, 256)),
    *attention.TABLE,
    *decoder.TABLE,
]
