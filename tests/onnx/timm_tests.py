"""Takes networks drawn from timm in by both ways, ONNX and PyTorch, and compares them with onnxruntime and PyTorch.

timm_tests.py FUSEC [--modules=60] [--page FILE] [--state FILE] [--only PATTERN]: prints a line per network. --state keeps the rows of
networks that agree, and a second call goes on with the others.

A draw takes some of timm's modules, and of each module the smallest of some drawn models. Weights are random, and batch
norms take the statistics of some images.
"""
import argparse
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings

import timm
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
import export_tests
import torch_tests
from export_cases import of_torch
from network_cases import Network, with_statistics
from op_cases import floats

SEED, N_DRAWN = 1, 8
SIZES = (64, 96, 128, 160, 224, 256)  # of images: the smallest that the network takes
FAILURES = (export_tests.Wrong, export_tests.NoPeer, torch_tests.Wrong, torch_tests.Unsupported,
            subprocess.TimeoutExpired)


def n_parameters(name):
    with torch.device("meta"):
        return sum(p.numel() for p in timm.create_model(name).parameters())


def drawn(n_modules):
    """Names of models, one of a module. A smaller draw is the beginning of a larger one."""
    draw = random.Random(SEED)
    modules = [module for module in sorted(timm.list_modules()) if timm.list_models(module=module)]
    for module in draw.sample(modules, 60)[:n_modules]:
        names = timm.list_models(module=module)
        yield module, min(draw.sample(names, min(len(names), N_DRAWN)), key=n_parameters)


def runs(model, size):
    try:
        with torch.no_grad():
            model(floats(1, 3, size, size))
        return True
    except (RuntimeError, AssertionError, ValueError):
        return False


def with_random_heads(model):
    """Some heads begin as zeros, and so would the outputs."""
    for weight in (p for p in model.parameters() if p.dim() > 1 and not p.any()):
        torch.nn.init.normal_(weight, std=0.1)
    return model


def made(name):
    """A model and the size of its images."""
    for size in SIZES:
        for given in ({"img_size": size}, {}):
            torch.manual_seed(1)
            try:
                model = timm.create_model(name, **given).eval()
            except (TypeError, AssertionError, RuntimeError, ValueError):
                continue
            if runs(model, size):
                return with_random_heads(with_statistics(model, size)).eval(), size
    raise export_tests.Wrong("it takes none of the sizes of images")


def by_onnx(fusec, model, size, folder):
    """The largest error, and launches."""
    it = export_tests.Exported(of_torch("", lambda: model, [floats(1, 3, size, size)]), folder, fusec)
    artifact, _ = it.compile(it.model)
    return it.run(artifact), it.launches(artifact)


def by_torch(fusec, model, size, folder):
    it = torch_tests.Translated(Network(model, [floats(1, 3, size, size)]), folder)
    artifact, _ = it.compile(fusec)
    return it.run(fusec, artifact), it.launches(fusec, artifact)


def roundings(model, size):
    """How far PyTorch's f32 is from its f64."""
    x = floats(1, 3, size, size)
    with torch.no_grad():
        narrow, wide = model(x), copy.deepcopy(model).double()(x.double())
    return float((narrow - wide).abs().max() / wide.abs().max())


def attempt(fusec, name):
    """The cells of a row after the name, and whether both ways agree."""
    try:
        model, size = made(name)
    except FAILURES as why:
        return [str(why)] + [""] * 4, False
    cells, good = [str(size)], True
    for way in (by_onnx, by_torch):
        with tempfile.TemporaryDirectory() as folder:
            try:
                error, launches = way(fusec, model, size, folder)
                cells += [f"{error:.1e}", str(launches)]
            except Exception as why:  # the exporters raise of every kind
                text = " ".join(str(why).replace(folder + "/", "").replace("|", "/").split())
                if "off by" in text:
                    text += f"; PyTorch's f32 is {roundings(model, size):.1e} from its f64"
                cells += [f"{'' if isinstance(why, FAILURES) else type(why).__name__ + ': '}{text[:200]}", ""]
                good = False
    return cells, good


def page_text(rows):
    good = sum(passes for _, _, passes in rows)
    lines = ["# Networks of timm", "",
             f"`make timm-tests MODULES={len(rows)}` writes this page. It draws {len(rows)} of the modules of timm {timm.__version__}, and of "
             f"each the smallest of up to {N_DRAWN} drawn models. Each comes in as ONNX and by `fusec.from_torch`, with "
             "random weights, and is compared with onnxruntime and with PyTorch on the CPU. The error is the largest "
             "difference over the largest output. It may be 0.0001. Images are f32[1, 3, n, n], of the smallest n that "
             "the network takes. Launches are those of the fused program.", "",
             f"{good} of {len(rows)} networks agree both ways.", "",
             "| module | model | n | error, ONNX | launches, ONNX | error, PyTorch | launches, PyTorch |",
             "|---|---|---|---|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {' | '.join(cells)} |" for name, cells, _ in rows]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--modules", type=int, default=60)
    parser.add_argument("--page")
    parser.add_argument("--state")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    known, rows = {}, []
    if options.state and os.path.exists(options.state):
        with open(options.state) as file:
            known = json.load(file)
    for module, name in drawn(options.modules):
        if not re.search(options.only, name):
            continue
        cells, good = known.get(name) or attempt(os.path.abspath(options.fusec), name)
        print(f"{module}, {name}: {', '.join(cells)}", flush=True)
        rows.append((f"{module} | {name}", cells, good))
        if good:
            known[name] = cells, good
        if options.state:
            with open(options.state, "w") as file:
                json.dump(known, file)
    if options.page:
        with open(options.page, "w") as page:
            page.write(page_text(rows))
    return any(not good for _, _, good in rows)


if __name__ == "__main__":
    sys.exit(main())
