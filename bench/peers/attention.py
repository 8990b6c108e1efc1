"""Workloads with attention. The peers are PyTorch's scaled_dot_product_attention, pinned to one
backend, and flex_attention, compiled, with a block mask that is made before.
"""

import math

from cases import Case, Tensor, Workload, text

WINDOW = 1024
# The documents of 8192 tokens.
DOCUMENTS = (517, 2040, 1001, 650, 1530, 391, 1290, 773)
ATTENTION = ("sdpa", "flex")  # the peers that are asked where nobody else can be near


def attend(torch, *operands, **options):
    return (torch.nn.functional.scaled_dot_product_attention(*operands, **options),)


def plain(o, q, k, v, change=None):
    """Attention as ops; `change` masks the scores or adds to them."""
    s = o.batched(q, o.swap(k)) * (1 / math.sqrt(q.shape[-1]))
    s = change(s) if change else s
    return (o.batched(o.softmax(s, -1), v),)


def operands(shape, keys=None):
    """q, k and v; the result."""
    return [Tensor("q", "bf16", shape), Tensor("k", "bf16", keys or shape),
            Tensor("v", "bf16", keys or shape)], [Tensor("o", "bf16", shape)]


def attention(batch, heads, length, width, causal, online=False):
    """Strict as PyTorch writes it, with scores of bf16; or online: the prelude's `attention`."""
    shape = (batch, heads, length, width)
    scale = 1 / math.sqrt(width)

    def build(layout):
        inputs, outputs = operands(shape)
        scores = f"(q @ transpose(k, perm=[0, 1, 3, 2])) * {scale!r}"
        if causal:
            n = f"[{length}, {length}]"
            scores = f"where(iota({n}, axis=1) <= iota({n}, axis=0), {scores}, -inf)"

        def fn(o, q, k, v):
            return plain(o, q, k, v, o.causal if causal else None)

        def sdpa(torch, q, k, v):
            return attend(torch, q, k, v, is_causal=causal)
        # Half of the work is masked away; what a program does not do counts for it.
        flops = 4.0 * batch * heads * length * length * width * (0.5 if causal else 1)
        body = f"o = attention(q, k, v{', is_causal=true' if causal else ''})" if online else \
            f"o = softmax({scores}) @ v"
        return Case(layout, text("attention", inputs, outputs, [body]), inputs, outputs, fn, flops,
                    "bf16", sdpa={"cudnn": sdpa, "flash": sdpa})
    return build


def online(length, width, causal):
    """A row of online attention: 131072 rows of queries in all."""
    heads = max(4, 65536 * 2 // length)
    name = f"online-{width}-{length}" + ("-causal" if causal else "")
    return Workload(name, attention(1, heads, length, width, causal, True), has_matmul=True,
                    target=1.0)


# ---- masks and biases ----

def flex(torch, q, k, v, *rest):
    """`rest` ends with the block mask."""
    return (torch.nn.attention.flex_attention.flex_attention(q, k, v, block_mask=rest[-1]),)


def block_mask(torch, length, sees):
    """`sees` (row, column) of index tensors."""
    return torch.nn.attention.flex_attention.create_block_mask(
        lambda b, h, i, j: sees(i, j), None, None, length, length, device="cuda")


def window(heads, length, width=128):
    """Each query sees the last WINDOW keys up to itself."""
    def sees(i, j):
        return (j <= i) & (j > i - WINDOW)

    def build(layout):
        inputs, outputs = operands((1, heads, length, width))
        n = f"[{length}, {length}]"
        body = [f"recent = iota({n}, axis=1) > iota({n}, axis=0) - {WINDOW}",
                "o = attention(q, k, v, mask=recent, is_causal=true)"]

        def fn(o, q, k, v):
            return plain(o, q, k, v, lambda s: o.hide(s, sees(*o.places(s))))
        flops = 4.0 * heads * (length - WINDOW / 2) * WINDOW * width
        return Case(layout, text("window", inputs, outputs, body), inputs, outputs, fn, flops,
                    "bf16", flex=flex,
                    ready={"flex": lambda torch, *_: block_mask(torch, length, sees)})
    return build


def documents(heads, causal, width=128):
    """Each query sees its own document."""
    length = sum(DOCUMENTS)

    def build(layout):
        inputs, outputs = operands((1, heads, length, width))
        inputs.append(Tensor("ids", "i32", (length,), values=lambda: [
            i for i, n in enumerate(DOCUMENTS) for _ in range(n)]))
        body = ["same = unsqueeze(ids, 1) == unsqueeze(ids, 0)",
                f"o = attention(q, k, v, mask=same{', is_causal=true' if causal else ''})"]

        def sees_by(ids):
            return lambda i, j: (ids[i] == ids[j]) & (j <= i) if causal else ids[i] == ids[j]

        def fn(o, q, k, v, ids):
            return plain(o, q, k, v, lambda s: o.hide(s, sees_by(ids)(*o.places(s))))
        pairs = sum(n * n for n in DOCUMENTS) * (0.5 if causal else 1)
        return Case(layout, text("documents", inputs, outputs, body), inputs, outputs, fn,
                    4.0 * heads * pairs * width, "bf16", flex=flex,
                    ready={"flex": lambda torch, q, k, v, ids: block_mask(torch, length,
                                                                          sees_by(ids))})
    return build


def biased(torch, q, k, v, *rest):
    """`rest` ends with the bias."""
    return attend(torch, q, k, v, attn_mask=rest[-1])


ON_BIAS = {"cudnn": biased, "efficient": biased}  # the backends that take one


def alibi(batch, heads, length, width=128):
    """Causal, with a bias of a slope per head times the distance. PyTorch takes it as a tensor."""
    shape = (batch, heads, length, width)

    def bias(o, s, slope):
        i, j = o.places(s)
        return slope.reshape(heads, 1, 1) * (j - i)

    def build(layout):
        inputs, outputs = operands(shape)
        inputs.append(Tensor("slope", "f32", (heads,), values=lambda: [
            2.0 ** (-8 * (h + 1) / heads) for h in range(heads)]))
        n = f"[{length}, {length}]"
        body = [f"distance = cast(iota({n}, axis=1) - iota({n}, axis=0), f32)",
                f"bias = reshape(slope, [{heads}, 1, 1]) * distance",
                "o = attention(q, k, v, mask=bias, is_causal=true)"]

        def fn(o, q, k, v, slope):
            return plain(o, q, k, v, lambda s: o.causal(s + bias(o, s, slope)))

        def ready(torch, q, k, v, slope):
            i, j = (torch.arange(length, device=q.device).view(s) for s in ((-1, 1), (1, -1)))
            made = torch.where(j <= i, slope.view(heads, 1, 1) * (j - i), float("-inf"))
            return made.to(q.dtype)
        return Case(layout, text("alibi", inputs, outputs, body), inputs, outputs, fn,
                    2.0 * batch * heads * length * length * width, "bf16", sdpa=ON_BIAS,
                    ready={"sdpa": ready})
    return build


def additive(batch, heads, length, width=128):
    """A bias of any values for each head, the same for the whole batch."""
    def build(layout):
        inputs, outputs = operands((batch, heads, length, width))
        inputs.append(Tensor("bias", "bf16", (heads, length, length)))

        def fn(o, q, k, v, bias):
            return plain(o, q, k, v, lambda s: s + bias)
        source = text("additive", inputs, outputs, ["o = attention(q, k, v, mask=bias)"])
        flops = 4.0 * batch * heads * length * length * width
        return Case(layout, source, inputs, outputs, fn, flops, "bf16", sdpa=ON_BIAS)
    return build


# ---- other shapes ----

def decode(batch, length, heads=64, key_heads=8, width=128):
    """One row of queries for each head; `heads / key_heads` heads share their keys."""
    def rows(q):
        return q.reshape(batch, key_heads, heads // key_heads, width)

    def build(layout):
        inputs, outputs = operands((batch, heads, 1, width), (batch, key_heads, length, width))

        def fn(o, q, k, v):
            return (plain(o, rows(q), k, v)[0].reshape(batch, heads, 1, width),)

        def grouped(torch, q, k, v):
            return attend(torch, q, k, v, enable_gqa=True)

        def as_rows(torch, q, k, v):
            return (attend(torch, rows(q), k, v)[0].reshape(batch, heads, 1, width),)
        return Case(layout, text("decode", inputs, outputs,
                                 ["o = attention(q, k, v, enable_gqa=true)"]),
                    inputs, outputs, fn, 4.0 * batch * heads * length * width, "bf16",
                    sdpa={"cudnn": grouped, "flash": grouped, "cudnn rows": as_rows,
                          "flash rows": as_rows})
    return build


def swin(n_windows, heads, length=49, width=32):
    """Many small windows."""
    shape = (n_windows, heads, length, width)

    def build(layout):
        inputs, outputs = operands(shape)

        def sdpa(torch, q, k, v):
            return attend(torch, q, k, v)
        return Case(layout, text("windows", inputs, outputs, ["o = attention(q, k, v)"]), inputs,
                    outputs, plain, 4.0 * n_windows * heads * length * length * width, "bf16",
                    sdpa={"cudnn": sdpa, "flash": sdpa, "efficient": sdpa})
    return build


def row(name, build, target):
    return Workload(f"online-{name}", build, has_matmul=True, target=target, peers=ATTENTION)


TABLE = [
    Workload("attention", attention(4, 16, 4096, 128, False), has_matmul=True, target=0.36),
    Workload("attention-causal", attention(4, 16, 4096, 128, True), has_matmul=True, target=0.33),
    *[online(length, width, causal) for width in (128, 64) for length in (1024, 4096, 16384)
      for causal in (False, True)],
    row("window-4096", window(32, 4096), 1.2),
    row("window-16384", window(8, 16384), 1.2),
    row("documents", documents(16, False), 1.2),
    row("documents-causal", documents(16, True), 1.2),
    row("alibi", alibi(4, 16, 4096), 1.5),
    row("bias", additive(4, 16, 4096), 1.5),
    *[row(f"decode-{batch}-{length}", decode(batch, length), 1.0) for batch in (1, 16)
      for length in (4096, 32768)],
    row("windows-49", swin(64 * 64, 3), 1.3),
]
