"""A decoder block of Llama's shape: norms, rotary embedding, causal attention with shared heads of
keys and values, a gated feed-forward part.
"""

import math

from attention import attend
from cases import Case, Tensor, Workload, text, weight

EPS = 1e-5
BASE = 500000.0  # of the rotary embedding

HEAD = """def project(x, w) = x @ transpose(w)
def heads(x) = transpose(reshape(x, [{tokens}, dim(x, 1) / {width}, {width}]), perm=[1, 0, 2])
def turn(x, c, s) {{
  a, b = split(cast(x, f32), 2, axis=2)
  return cast(concat([a * c - b * s, b * c + a * s], axis=2), dtype(x))
}}
"""

BODY = """z = rmsnorm(x, norm1, eps={eps})
q = turn(heads(project(z, wq)), c, s)
k = turn(heads(project(z, wk)), c, s)
a = attention(q, k, heads(project(z, wv)), is_causal=true, enable_gqa=true)
h = x + project(reshape(transpose(a, perm=[1, 0, 2]), [{tokens}, {n}]), wo)
f = rmsnorm(h, norm2, eps={eps})
y = h + project(silu(project(f, wg)) * project(f, wu), wd)"""


def turned(wide, x, c, s):
    """Turns the pairs of channels i and i + width / 2, in f32."""
    a, b = wide(x).chunk(2, -1)
    return a * c - b * s, b * c + a * s


def decoder(tokens, n, hidden, heads, key_heads):
    width = n // heads

    def angles(of):
        return lambda: [of(t * BASE ** (-2 * i / width)) for t in range(tokens)
                        for i in range(width // 2)]

    def block(torch, wide, attention, x, c, s, norm1, wq, wk, wv, wo, norm2, wg, wu, wd):
        linear, rms_norm = torch.nn.functional.linear, torch.nn.functional.rms_norm

        def split(x):
            return x.view(1, tokens, -1, width).transpose(1, 2)

        def turn(x):
            return torch.cat(turned(wide, x, c, s), -1).to(x.dtype)
        z = rms_norm(x, (n,), norm1, EPS)
        q, k, v = (split(linear(z, w)) for w in (wq, wk, wv))
        a = attention(turn(q), turn(k), v)
        h = x + linear(a.transpose(1, 2).reshape(tokens, n), wo)
        f = rms_norm(h, (n,), norm2, EPS)
        gate = torch.nn.functional.silu(linear(f, wg)) * linear(f, wu)
        return (h + linear(gate, wd),)

    def build(layout):
        def param(name, k, to):
            return weight(name, k, to, "bf16", "nk", True)

        def norm(name):
            return Tensor(name, "bf16", (n,), 1, True)
        inputs = [Tensor("x", "bf16", (tokens, n)),
                  Tensor("c", "f32", (tokens, width // 2), values=angles(math.cos)),
                  Tensor("s", "f32", (tokens, width // 2), values=angles(math.sin)),
                  norm("norm1"), param("wq", n, n), param("wk", n, key_heads * width),
                  param("wv", n, key_heads * width), param("wo", n, n), norm("norm2"),
                  param("wg", n, hidden), param("wu", n, hidden), param("wd", hidden, n)]
        outputs = [Tensor("y", "bf16", (tokens, n))]

        def fn(o, *operands):
            def attention(q, k, v):
                s = o.batched(q.reshape(1, key_heads, -1, tokens, width), o.swap(k)[:, :, None])
                weights = o.softmax(o.causal(s / math.sqrt(width)), -1)
                return o.batched(weights, v[:, :, None]).reshape(q.shape)
            return block(o.torch, o.wide, attention, *operands)

        def sdpa(torch, *operands):
            def attention(q, k, v):
                return attend(torch, q, k, v, is_causal=True, enable_gqa=True)[0]
            return block(torch, torch.Tensor.float, attention, *operands)
        projections = 2.0 * tokens * n * (2 * n + 2 * key_heads * width + 3 * hidden)
        forms = {"cudnn": sdpa, "flash": sdpa}
        source = text("decoder", inputs, outputs,
                      BODY.format(tokens=tokens, n=n, eps=EPS).splitlines(),
                      HEAD.format(tokens=tokens, width=width))
        return Case(layout, source, inputs, outputs, fn,
                    projections + 2.0 * tokens * tokens * n, "bf16", sdpa=forms, compiled=forms)
    return build


def row(tokens, target):
    return Workload(f"decoder-{tokens}", decoder(tokens, 4096, 14336, 32, 8), has_matmul=True,
                    target=target, peers=("sdpa", "compile"))


TABLE = [row(4096, 1.1), row(128, 1.2)]
