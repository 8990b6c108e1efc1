"""Translates PyTorch modules and compares `fusec run` on the CPU, fused and unfused, with PyTorch.

torch_tests.py FUSEC [--page FILE] [--ops FILE] [--networks]: prints a line per failure and the counts. --page writes
the table of networks, --ops the table of core ATen ops with what the cases found.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import fusec
from fusec.aten import OPS, Unsupported

BOUND = 1e-4  # of the largest output in f32


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def floats(*shape):
    return torch.randn(*shape)


def positive(*shape):
    return torch.rand(*shape) * 0.9 + 0.05


def integers(*shape):
    return torch.randint(-9, 10, shape)


def below(n, *shape):
    return torch.randint(0, n, shape)


def cases():
    """Pairs of a name and (function, inputs)."""
    x, y, p = floats(3, 5), floats(3, 5), positive(3, 5)
    i, j = integers(3, 5), integers(3, 5)
    image, mask = floats(2, 4, 8, 8), floats(3, 5) > 0
    for name in ("abs sign neg relu floor ceil round trunc exp expm1 sin cos tan atan sinh cosh tanh asinh erf sigmoid "
                 "isnan isinf").split():
        yield name, (getattr(torch, name), [x])
    for name in "log log2 log10 log1p sqrt rsqrt asin acos atanh reciprocal".split():
        yield name, (getattr(torch, name), [p])
    yield "acosh", (torch.acosh, [p + 1])
    for name in ("silu mish hardswish hardsigmoid relu6 logsigmoid softsign selu elu leaky_relu gelu hardtanh "
                 "celu softplus").split():
        yield name, (getattr(F, name), [x])
    yield "gelu_tanh", (lambda a: F.gelu(a, approximate="tanh"), [x])
    for name in "add sub mul div fmod remainder maximum minimum atan2 eq ne lt le gt ge".split():
        yield name, (getattr(torch, name), [x, y])
        yield name + " number", (getattr(torch, name), [x, 0.5]) if name not in ("maximum", "minimum", "atan2") else (
            getattr(torch, name), [y, x])
    for name in "eq ne lt le gt ge".split():
        yield name + " mixed", (getattr(torch, name), [i, 0.5])
    yield "add alpha", (lambda a, b: torch.add(a, b, alpha=2), [x, y])
    yield "promotion", (lambda a, b: a + b, [x, i])
    yield "integers", (lambda a, b: (a + b * 3 - 1, a / (b * b + 1)), [i, j])
    yield "rsub", (lambda a: 1 - a, [x])
    for mode in ("floor", "trunc"):
        yield f"div {mode}", (lambda a, b, mode=mode: torch.div(a, b, rounding_mode=mode), [x, y])
        yield f"div {mode} integers", (lambda a, b, mode=mode: torch.div(a, b.abs() + 1, rounding_mode=mode), [i, j])
    yield "remainder integers", (lambda a: torch.remainder(a, 4), [i])
    yield "remainder number", (lambda a: torch.remainder(a, -0.75), [x])
    for name in "bitwise_and bitwise_or bitwise_xor".split():
        yield name, (getattr(torch, name), [i, j])
    yield "bitwise_not", (lambda a, m: (~a, ~m), [i, mask])
    for name in "logical_and logical_or logical_xor".split():
        yield name, (getattr(torch, name), [x, mask])
    yield "logical_not", (torch.logical_not, [mask])
    for power in (2, 3, 0.5, 1.5, -1):
        yield f"pow {power}", (lambda a, power=power: a ** power, [p])
    yield "pow tensors", (torch.pow, [p, y])
    yield "pow of a number", (lambda a: 2.0 ** a, [x])
    yield "clamp", (lambda a: (a.clamp(-0.5, 0.5), a.clamp(min=0.1), a.clamp(max=0.1)), [x])
    yield "clamp tensors", (torch.clamp, [x, -p, p])
    yield "where", (torch.where, [mask, x, y])
    yield "masked_fill", (lambda a, m: a.masked_fill(m, float("-inf")), [x, mask])
    yield "to", (lambda a: (a.to(torch.int32), a.to(torch.float64)), [x * 5])
    yield "dropout", (lambda a: F.dropout(a, 0.5, False), [x])
    yield "full", (lambda a: a + torch.full((3, 5), 2.0), [x])
    yield "ones and zeros", (lambda a: (torch.ones_like(a), torch.zeros_like(a), a), [x])
    yield "full of bool", (lambda a: (torch.ones(3, 5, dtype=torch.bool) & (a > 0)), [x])
    yield "arange", (lambda a: a + torch.arange(2, 12, 2, dtype=torch.float32), [x])
    for name in "sum mean prod amax amin".split():
        yield name, (lambda a, op=getattr(torch, name): op(a, dim=1), [x])
        yield name + " keep", (lambda a, op=getattr(torch, name): op(a, dim=-1, keepdim=True), [x])
    yield "sum all", (lambda a: (a.sum(), a.mean(), a.prod()), [x])
    yield "sum axes", (lambda a: (a.sum((0, 2)), a.mean((1, 3), keepdim=True)), [image])
    yield "sum of bools", (lambda m: m.sum(1), [mask])
    yield "any and all", (lambda m: (m.any(), m.any(1), m.all(0)), [mask])
    yield "argmax", (lambda a: (a.argmax(1), a.argmin(0), a.argmax()), [x])
    yield "max of an axis", (lambda a: (*a.max(1), *a.min(0)), [x])
    yield "var", (lambda a: (a.var(1), a.var((0, 1), correction=0, keepdim=True), a.std(0)), [x])
    yield "cumsum", (lambda a: a.cumsum(1), [x])
    yield "sort", (lambda a: (*a.sort(1), a.sort(0, descending=True).values), [x])
    yield "topk", (lambda a: (*a.topk(2), *a.topk(2, dim=0, largest=False)), [x])
    yield "softmax", (lambda a: (a.softmax(0), a.log_softmax(-1)), [x])
    yield "view", (lambda a: (a.view(5, 3), a.flatten(), a.unsqueeze(1).squeeze(1)), [x])
    yield "expand", (lambda a: a[:, None].expand(3, 4, 5), [x])
    yield "permute", (lambda a: a.permute(2, 0, 3, 1), [image])
    yield "as_strided", (lambda a: (a * 2).permute(0, 2, 3, 1).as_strided((2, 8, 32), (256, 1, 8)), [image])
    yield "repeat", (lambda a: a.repeat(2, 3), [x])
    yield "flip", (lambda a: a.flip(0, 1), [x])
    yield "cat", (lambda a, b: (torch.cat([a, b], 1), torch.stack([a, b])), [x, y])
    yield "split", (lambda a: tuple(a.split([1, 4], 1)), [x])
    yield "select", (lambda a: (a[1], a[:, -1]), [x])
    yield "slice", (lambda a: (a[1:], a[:, -3:-1], a[:, ::2], a[:, 1:100]), [x])
    yield "slice_scatter", (lambda a, b: torch.slice_scatter(a, b[:, :2], 1, 1, 3), [x, y])
    yield "select_scatter", (lambda a, b: torch.select_scatter(a, b[:, 0], 1, 2), [x, y])
    yield "pad", (lambda a: (F.pad(a, (1, 2, 0, 1), value=3.0), F.pad(a, (-1, 1))), [x])
    yield "pad reflect", (lambda a: F.pad(a, (1, 2, 3, 0), mode="reflect"), [image])
    yield "pad replicate", (lambda a: F.pad(a, (1, 2, 3, 0), mode="replicate"), [image])
    yield "embedding", (F.embedding, [below(3, 2, 4), x])
    yield "index_select", (lambda a, k: a.index_select(1, k), [x, below(5, 4)])
    yield "gather", (lambda a, k: a.gather(1, k), [x, below(5, 3, 2)])
    yield "index", (lambda a, k, m: (a[k], a[:, m], a[k, m]), [x, below(3, 4), below(5, 4) - 5])
    yield "scatter", (lambda a, k, s: (a.scatter_add(1, k, s), a.scatter(1, k, 2.5)), [x, below(5, 3, 2), floats(3, 2)])
    yield "matmul", (lambda a, b: (a @ b.T, torch.bmm(a[None], b.T[None]), F.linear(a, b)), [x, y])
    yield "addmm", (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), [floats(3), x, floats(5, 3)])
    yield "attention", (F.scaled_dot_product_attention, [floats(2, 2, 6, 8)] * 3)
    yield "conv1d", (F.conv1d, [floats(2, 4, 9), floats(6, 4, 3), floats(6)])
    yield "conv2d", (lambda a, w: F.conv2d(a, w, stride=2, padding=1, groups=2), [image, floats(6, 2, 3, 3)])
    yield "conv2d dilated", (lambda a, w: F.conv2d(a, w, dilation=2), [image, floats(6, 4, 3, 3)])
    yield "conv3d", (F.conv3d, [floats(1, 2, 5, 5, 5), floats(3, 2, 3, 3, 3)])
    yield "conv_transpose2d", (lambda a, w: F.conv_transpose2d(a, w, stride=2, padding=1, output_padding=1),
                               [image, floats(4, 3, 3, 3)])
    yield "max_pool2d", (lambda a: F.max_pool2d(a, 3, 2, 1), [image])
    yield "max_pool3d", (lambda a: F.max_pool3d(a, 2), [floats(1, 2, 4, 4, 4)])
    yield "avg_pool2d", (lambda a: (F.avg_pool2d(a, 2), F.avg_pool2d(a, 3, 2, 1, count_include_pad=False)), [image])
    yield "avg_pool3d", (lambda a: F.avg_pool3d(a, 2), [floats(1, 2, 4, 4, 4)])
    yield "adaptive_avg_pool", (lambda a: (F.adaptive_avg_pool2d(a, 1), F.adaptive_avg_pool2d(a, 3)), [image])
    yield "batch_norm", (lambda a, m, v, g: F.batch_norm(a, m, v, g), [image, floats(4), positive(4), floats(4)])
    yield "layer_norm", (lambda a, g, b: (F.layer_norm(a, (5,), g, b), F.layer_norm(a, (3, 5))),
                         [x, floats(5), floats(5)])
    yield "group_norm", (lambda a, g: (F.group_norm(a, 2, g), F.instance_norm(a)), [image, floats(4)])
    yield "nearest", (lambda a: F.interpolate(a, scale_factor=2), [image])
    yield "bilinear", (lambda a: F.interpolate(a, size=(13, 11), mode="bilinear"), [image])
    yield "bilinear corners", (lambda a: F.interpolate(a, size=(13, 11), mode="bilinear", align_corners=True), [image])
    yield "grid_sample", (lambda a, g: F.grid_sample(a, g, align_corners=False), [image, floats(2, 3, 3, 2) / 2])


def vision_transformer(models):
    model = models.VisionTransformer(64, 16, 4, 4, 128, 256)
    torch.nn.init.normal_(model.heads.head.weight, std=0.1)  # it begins as zeros, and so would the outputs
    return model


def networks():
    """Pairs of a name and a function that gives (model, args)."""
    image = lambda: [floats(1, 3, 64, 64)]
    yield "MLP", lambda: (torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10)),
                          [floats(8, 64)])
    yield "Transformer encoder", lambda: (torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), [floats(2, 16, 64)])
    import torchvision.models as models

    for name in "resnet18 resnet50 mobilenet_v3_small efficientnet_b0 convnext_tiny swin_t".split():
        yield name, lambda name=name: (getattr(models, name)(weights=None), image())
    yield "vit", lambda: (vision_transformer(models), image())


def run(fusec_path, model, args):
    """(what went wrong or "", the program, facts of the runs)."""
    model.eval()
    with torch.no_grad():
        start = time.time()
        wanted = model(*args)
        peer = time.time() - start
        program = fusec.from_torch(model, args)
    wanted = [w for w in (wanted if isinstance(wanted, (tuple, list)) else [wanted])]
    worst = 0.0
    given = [a for a in args if isinstance(a, torch.Tensor)]
    with tempfile.TemporaryDirectory() as folder:
        program.save(f"{folder}/model.g")
        command = [fusec_path, "run", f"{folder}/model.g", "--device=cpu"]
        for name, array in zip(program.inputs, given):
            np.save(f"{folder}/in_{name}.npy", array.contiguous().numpy())
            command.append(f"--input={name}=@{folder}/in_{name}.npy")
        command += [f"--output={name}=@{folder}/out_{name}.npy" for name in program.outputs]
        for mode in ([], ["--no-fuse"]):
            start = time.time()
            done = subprocess.run(command + mode, capture_output=True, text=True, timeout=300)
            took = time.time() - start
            if done.returncode:
                return f"{' '.join(mode)} " + done.stderr.strip()[:300].replace(folder + "/", ""), program, None
            for name, w in zip(program.outputs, wanted):
                got, w = np.load(f"{folder}/out_{name}.npy"), w.detach().numpy()
                if got.shape != w.shape or got.dtype != w.dtype:
                    return f"{name} is {got.dtype}{list(got.shape)}, not {w.dtype}{list(w.shape)}", program, None
                finite = np.isfinite(w.astype(np.float64))
                if not np.array_equal(got[~finite], w[~finite], equal_nan=w.dtype.kind == "f"):
                    return f"{name} differs in what is not finite", program, None
                g, w = got[finite].astype(np.float64), w[finite].astype(np.float64)
                error = np.abs(g - w).max(initial=0) / max(np.abs(w).max(initial=0), 1e-30)
                worst = max(worst, error)
                if error > (BOUND if got.dtype.kind == "f" else 0):
                    return f"{' '.join(mode)} {name} is off by {error:.1e} of the largest", program, None
    return "", program, (worst, took, peer)


def attempt(fusec_path, name, model, args):
    try:
        why, program, facts = run(fusec_path, model, args)
    except (Unsupported, subprocess.TimeoutExpired) as error:
        why, program, facts = str(error), None, None
    if why:
        print(f"{name}: {why}", flush=True)
    return why, program, facts


def ops_page(tried):
    core = sorted(str(o).removeprefix("aten.") for n in dir(torch.ops.aten) for p in [getattr(torch.ops.aten, n)]
                  if hasattr(p, "overloads") for o in [getattr(p, v) for v in p.overloads()] if torch.Tag.core in o.tags)
    has = sum(op in OPS for op in core)
    lines = ["<!-- Generated by tests/torch/torch_tests.py: make torch-tests -->", "# Core ATen ops", "",
             f"PyTorch {torch.__version__.split('+')[0]} has {len(core)} core ops. The table of "
             f"[aten.py](../../python/fusec/aten.py) has rows for {has} of them. `tested` says that a case of "
             "[torch_tests.py](../../tests/torch/torch_tests.py) that uses the row agrees with PyTorch on the CPU, "
             "fused and unfused.", "", "| op | row |", "|---|---|"]
    lines += [f"| `{op}` | {'none' if op not in OPS else 'tested' if op in tried else 'not tested'} |" for op in core]
    return "\n".join(lines) + "\n"


def networks_page(rows):
    lines = ["<!-- Generated by tests/torch/torch_tests.py: make torch-tests -->", "# Networks from PyTorch", "",
             "Random weights, f32, on the CPU. The error is the largest difference from PyTorch's outputs, over the "
             "largest of those, fused and unfused.", "", "| network | result | largest error |", "|---|---|---|"]
    lines += [f"| {name} | {why.replace('|', '/').splitlines()[0] if why else 'pass'} | {f'{facts[0]:.1e}' if facts else ''} |" for name, why, facts in rows]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--page")
    parser.add_argument("--ops")
    options = parser.parse_args()
    torch.manual_seed(1)
    tried, failed, n = set(), 0, 0
    for name, (function, args) in cases():
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        rest = [a for a in args if not isinstance(a, torch.Tensor)]
        why, program, _ = attempt(options.fusec, name, Function(lambda *a: function(*a, *rest)), tensors)
        n, failed = n + 1, failed + bool(why)
        tried |= set() if why else program.ops
    print(f"{n - failed} of {n} cases of ops pass", flush=True)
    if options.ops:
        with open(options.ops, "w") as file:
            file.write(ops_page(tried))
    rows = []
    for name, make in networks() if options.page else []:
        why, _, facts = attempt(options.fusec, name, *make())
        rows.append((name, why, facts))
        failed += bool(why)
    if options.page:
        print(f"{sum(not why for _, why, _ in rows)} of {len(rows)} networks pass")
        with open(options.page, "w") as file:
            file.write(networks_page(rows))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
