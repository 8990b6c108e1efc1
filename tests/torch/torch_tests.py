"""Translates PyTorch modules and compares what fusec computes on the CPU, fused and unfused, with PyTorch.

torch_tests.py FUSEC [--page FILE] [--ops FILE] [--guide FILE] [--store FOLDER]: prints a line per failure and the
counts. --page runs the networks and writes their table, --ops writes the table of core ATen ops with what the cases
found, --guide runs the example of that page, which must state their number, and --store writes the translations that
tests/torch/test_stored.c runs.

A translation is compiled once and runs with two sets of inputs. Its outputs must not be zeros, and the sets must
differ in them by 1e-2 of the largest.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch.utils import _pytree

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
sys.path.insert(0, PYTHON)
import fusec
from fusec.aten import NEEDED, NO_ROW, OPS, Unsupported
from network_cases import Function, Network, networks, programs, solved
from op_cases import cases

BOUND = 1e-4  # of the largest output, of floats; the rest must be equal
N_THREADS = 1  # of timed runs
N_RUNS = 20


class Wrong(Exception):
    """What a comparison found."""


def call(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Wrong(done.stderr.strip()[:300])
    return done.stdout


def arrays_of(values):
    return [v.detach().contiguous().numpy() for v in _pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]


def other(tensor):
    """Values that an op takes where it takes those of `tensor`."""
    moved = tensor.flatten().roll(1).reshape(tensor.shape)
    return moved * 0.97 + 0.02 if tensor.is_floating_point() else moved


def compare(name, got, wanted):
    """The largest difference over the largest value."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Wrong(f"{name} is {got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}")
    is_float = wanted.dtype.kind == "f"
    finite = np.isfinite(wanted.astype(np.float64))
    if not np.array_equal(got[~finite], wanted[~finite], equal_nan=is_float):
        raise Wrong(f"{name} differs in what is not finite")
    g, w = got[finite].astype(np.float64), wanted[finite].astype(np.float64)
    error = np.abs(g - w).max(initial=0) / max(np.abs(w).max(initial=0), 1e-30)
    if not error <= (BOUND if is_float else 0):
        raise Wrong(f"{name} is off by {error:.1e} of the largest")
    return error


def says_something(first, second):
    """Whether an output is not all zeros, and the sets of inputs differ in it by far more than an error may be."""
    if first.shape != second.shape or first.dtype.kind != "f" or not np.isfinite([first, second]).all():
        return first.any() and not np.array_equal(first, second)
    return np.abs(first - second).max(initial=0) > 100 * BOUND * np.abs(first).max(initial=0)


class Translated:
    """A network's program in a folder, with the numbers of each of its sets."""

    def __init__(self, network, folder):
        self.network, self.folder, self.source = network, folder, f"{folder}/model.g"
        with torch.no_grad():
            self.wanted = [arrays_of(network.model(*args)) for args in network.sets]
            self.program = fusec.from_torch(network.model, network.sets[0], dynamic_shapes=network.dynamic_shapes)
        self.program.save(self.source)
        for k, args in enumerate(network.sets):
            for name, array in zip(self.program.inputs, arrays_of(args), strict=True):
                np.save(self.file(k, name), array)

    def file(self, k, name):
        return f"{self.folder}/set{k}_{name}.npy"

    def inputs(self, k):
        return [f"--input={name}=@{self.file(k, name)}" for name in self.program.inputs]

    def check_weights(self):
        n = len(self.program.weights)
        if self.network.n_weights not in (None, n):
            raise Wrong(f"the translation stores {n} weights, not {self.network.n_weights}")

    def check_outputs(self, every):
        """With `every`, each output says something; else one of them is enough."""
        said = [says_something(*both) for both in zip(*self.wanted, strict=True)]
        if not (all if every else any)(said):
            raise Wrong("outputs are zeros, or do not depend on the inputs")

    def run(self, fusec_path, artifact):
        """The largest error of all sets."""
        worst = 0.0
        for k, wanted in enumerate(self.wanted):
            paths = [f"{self.folder}/got_{name}.npy" for name in self.program.outputs]
            call([fusec_path, "run", artifact, "--device=cpu", *self.inputs(k),
                  *(f"--output={name}=@{path}" for name, path in zip(self.program.outputs, paths))])
            for name, path, w in zip(self.program.outputs, paths, wanted, strict=True):
                worst = max(worst, compare(name, np.load(path), w))
        return worst

    def compile(self, fusec_path, *how):
        artifact = f"{self.folder}/model.o"
        start = time.perf_counter()
        call([fusec_path, self.source, "-o", artifact, "--target=native", *how])
        return artifact, time.perf_counter() - start

    def launches(self, fusec_path, artifact):
        return json.loads(call([fusec_path, "bench", artifact, "--device=cpu", "--runs=1", "--json",
                                *self.inputs(0)]))["launches"]

    def time(self, fusec_path, artifact):
        """Launches, and medians of a run in ms, of fusec and of PyTorch."""
        report = json.loads(call([fusec_path, "bench", artifact, "--device=cpu", f"--threads={N_THREADS}",
                                  f"--runs={N_RUNS}", "--json", *self.inputs(0)]))
        took = []
        with torch.no_grad():
            for _ in range(N_RUNS + 2):
                start = time.perf_counter()
                self.network.model(*self.network.sets[0])
                took.append(time.perf_counter() - start)
        return report["launches"], report["median_us"] / 1e3, statistics.median(took[2:]) * 1e3


def attempt(fusec_path, name, network, folder, every=True, timed=False):
    """(what went wrong or "", the program or None, facts of the runs or None)."""
    try:
        it = Translated(network, folder)
        it.check_weights()
        it.check_outputs(every)
        artifact, _ = it.compile(fusec_path, "--no-fuse")
        error = it.run(fusec_path, artifact)
        artifact, seconds = it.compile(fusec_path)
        error = max(error, it.run(fusec_path, artifact))
        return "", it.program, (error, seconds, *it.time(fusec_path, artifact)) if timed else None
    except (Unsupported, Wrong, subprocess.TimeoutExpired) as error:
        why = str(error).replace(folder + "/", "")
        print(f"{name}: {why}", flush=True)
        return why, None, None


def run_all(fusec_path, title, makers, **how):
    """Yields (name, what went wrong, program, facts)."""
    n = n_good = 0
    for name, make in makers:
        with tempfile.TemporaryDirectory() as folder:
            why, program, facts = attempt(fusec_path, name, make(), folder, **how)
        n, n_good = n + 1, n_good + (not why)
        yield name, why, program, facts
    print(f"{title}: {n_good} of {n} pass", flush=True)


def op_networks():
    for name, (function, args) in cases():
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        rest = [a for a in args if not isinstance(a, torch.Tensor)]
        model = Function(lambda *a, function=function, rest=rest: function(*a, *rest))
        yield name, lambda model=model, tensors=tensors: Network(model, tensors, [other(t) for t in tensors])


def refusals():
    """Triples of a name, a module and its input that have no translation, and what the error must name."""
    x, image, module = torch.randn(3, 5), torch.randn(1, 2, 5, 5), torch.nn
    yield "random numbers", Function(lambda a: a + torch.rand(3, 5)), x, "aten.rand.default (node rand)"
    yield "numbers drawn like others", Function(lambda a: a + torch.rand_like(a)), x, "from a key"
    yield "chosen numbers", Function(lambda a: torch.multinomial(a.softmax(0), 2)), x, "make them an input"
    yield "counts", Function(lambda a: torch.bincount(a.long().flatten().abs())), x, "bincount(x, n)"
    yield "a solver", Function(lambda a: torch.linalg.inv(a @ a.T)), x, "no solvers"
    yield "a function of numbers", Function(torch.digamma), x, "a series of arithmetic"
    yield "an op of no row", Function(lambda a: torch.mode(a)[0]), x, "needed are a row there"
    yield "mask as index", Function(lambda a, m=torch.eye(3, 5) > 0: a[m]), x, "use where"
    yield "a mask's places", Function(lambda a: (a > 0).nonzero()), x, "aten.nonzero.default"
    yield "training", module.BatchNorm2d(2).train(), image, "call eval()"
    yield "a number as an index", Function(lambda a: a[a[0, 0].long().item()]), x, "use index_select"
    yield "a number computed by Python", Function(lambda a: a * (a[0, 0].item() + 1)), x, "compute it with tensors"
    yield "rounds", Function(lambda a: torch._higher_order_ops.while_loop(
        lambda b: b.sum() < 10, lambda b: (b + 1,), (a,))), x, "op while_loop"
    yield "a branch of Python", Function(lambda a: a if a.sum() > 0 else -a), x, "torch.export does not take the model in"
    yield "no module", torch.sin, x, "must be a torch.nn.Module"
    yield "complex", Function(lambda a: torch.fft.fft(a).real), x, "aten._fft"


def run_refusals():
    """The number of those that are not refused as they must be."""
    n = n_good = 0
    for name, model, given, part in refusals():
        try:
            fusec.from_torch(model, [given])
            said = "nothing"
        except Unsupported as why:
            said = str(why)
        n, n_good = n + 1, n_good + (part in said)
        if part not in said:
            print(f"{name}: the error says {said}, and nothing of `{part}`")
    print(f"refusals: {n_good} of {n} pass", flush=True)
    return n - n_good


FILES = {
    "helper.py": "width = 4\n",
    "sized.py": """import torch

def make():
    return torch.nn.Linear(4, 2).eval(), (torch.randn(3, 4),), ({0: torch.export.Dim("B", max=64)},)
""",
    "model.py": """from __future__ import annotations
from dataclasses import dataclass
import torch
from helper import width

@dataclass
class Config:
    wide: int = width

def make():
    return torch.nn.Linear(Config().wide, 2).eval(), (torch.randn(2, 4),)

def nothing():
    pass
"""}
COMMANDS = [("model.py:make", "model.g", ""), ("model.py:made", "model.g", "no function made, but make, nothing"),
            ("models.py:make", "model.g", "there is no file"), ("model.py", "model.g", "as in model.py:make"),
            ("model.py:nothing", "model.g", "must return (model, args)"),
            ("model.py:make", "model.safetensors", "is the file of the weights"),
            ("model.py:make", "no/folder.g", "there is no folder"),
            ("sized.py:make", "model.g", "", "--dim=B=32"), ("sized.py:make", "model.g", "", "--dim=B=8..60:4"),
            ("sized.py:make", "model.g", "the model's B is 1 to 64", "--dim=B=1..65"),
            ("sized.py:make", "model.g", "has no dim of this name, but B", "--dim=H=3"),
            ("sized.py:make", "model.g", "wants a number, or a range", "--dim=B=4..3")]
SPELLED = {"--dim=B=32": "input: f32[32, ", "--dim=B=8..60:4": "dim B_4 in 2..15\n"}  # in the source


def translate_file(folder, what, out, *more):
    return subprocess.run([sys.executable, "-m", "fusec.torch", f"{folder}/{what}", "-o", f"{folder}/{out}", *more],
                          env={**os.environ, "PYTHONPATH": PYTHON}, capture_output=True, text=True)


def run_commands():
    """The number of command lines whose message is wrong, or that fail without one."""
    n_good = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            write(f"{folder}/{name}", text)
        for what, out, part, *more in COMMANDS:
            done = translate_file(folder, what, out, *more)
            is_good = part in done.stderr and "Traceback" not in done.stderr and bool(done.returncode) == bool(part)
            if is_good and not part and more:
                with open(f"{folder}/{out}") as file:
                    is_good = SPELLED[more[0]] in file.read()
            n_good += is_good
            if not is_good:
                print(f"{what} -o {out} {' '.join(more)}: {done.returncode}, and the message is {done.stderr.strip()[-300:]}")
    print(f"command lines: {n_good} of {len(COMMANDS)} pass", flush=True)
    return len(COMMANDS) - n_good


def run_guide(fusec_path, guide):
    """The example of the guide, by the command line that it gives; what went wrong or ""."""
    with open(guide) as file:
        example = file.read().split("```python\n")[1].split("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/model.py", example)
        done = translate_file(folder, "model.py:make", "model.g")
        if done.returncode:
            return done.stderr.strip()[-300:]
        try:
            call([fusec_path, f"{folder}/model.g", "-o", f"{folder}/model.ptx"])
        except Wrong as why:
            return str(why)
    return ""


def store(folder):
    """The programs' sources, weights, inputs and PyTorch's outputs."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, make in programs():
        os.makedirs(f"{folder}/{name}")
        it = Translated(make(), f"{folder}/{name}")
        for k, wanted in enumerate(it.wanted):
            for output, array in zip(it.program.outputs, wanted, strict=True):
                np.save(it.file(k, output), array)


def core_ops():
    """The overloads that PyTorch tags as core, without those that compute numbers of shapes."""
    packets = {name.removeprefix("aten::").split(".")[0] for name in torch._C._dispatch_get_all_op_names()
               if name.startswith("aten::")}  # `dir` has those alone that were used before
    packets = [getattr(torch.ops.aten, name) for name in packets]
    overloads = [getattr(p, v) for p in packets for v in p.overloads()]
    names = [str(o).removeprefix("aten.") for o in overloads if torch.Tag.core in o.tags]
    return sorted(name for name in names if not name.startswith("sym_"))


def overloads():
    """All of ATen; a row may also be there for kinds of operands that no overload takes."""
    names = [name.removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    return {name if "." in name else name + ".default" for name in names}


def coverage(core):
    return f"{sum(op in OPS for op in core)} of the {len(core)} core ATen overloads"


def ops_row(op, tried):
    text = f"`{tried[op]}`".replace("|", "\\|") if op in tried else ""
    how = f"none: {NO_ROW[op]}" if op in NO_ROW else "tested" if text else "not tested"
    return f"| `{op}` | {how} | {text} |"


def ops_page(core, tried):
    lines = ["<!-- Generated by tests/torch/torch_tests.py: make torch-tests -->", "# Core ATen ops", "",
             f"The table of [aten.py](../../python/fusec/aten.py) has rows for {coverage(core)} of PyTorch "
             f"{torch.__version__.split('+')[0]}. Overloads that compute numbers of shapes need no row and are not "
             "counted. `tested` says that a case of [op_cases.py](../../tests/torch/op_cases.py) that uses the row "
             "agrees with PyTorch on the CPU, fused and unfused. For an op without a row it says what would be needed. "
             "The last column is the shortest text that a case became.", "",
             "| op | row | a case in the language |", "|---|---|---|"]
    lines += [ops_row(op, tried) for op in core]
    more = sorted((set(OPS) & overloads()) - set(core))
    lines += ["", "## More overloads", "",
              f"The table has rows for {len(more)} overloads that are not core ones. PyTorch does not decompose them, or the row "
              "is shorter than their parts.", "", "| op | row | a case in the language |", "|---|---|---|"]
    lines += [ops_row(op, tried) for op in more]
    lines += ["", "## Ops without a row", "", "An op that is in neither table is an error, which says this of it. Of every other op "
              "it says that a row is needed.", "", "| ops | what is needed |", "|---|---|"]
    lines += [f"| {', '.join(f'`{name}`' for name in sorted(names.split()))} | {why} |" for why, names in NEEDED]
    return "\n".join(lines) + "\n"


def network_row(name, why, facts):
    if why:
        return f"| {name} | {why.splitlines()[0].replace('|', '/')} | | | | |"
    error, seconds, launches, ours, theirs = facts
    return f"| {name} | {error:.1e} | {launches} | {seconds * 1e3:.0f} ms | {ours:.3g} ms | {theirs:.3g} ms |"


def networks_page(rows):
    lines = ["<!-- Generated by tests/torch/torch_tests.py: make torch-tests -->", "# Networks from PyTorch", "",
             f"Random weights, f32, on the CPU, beside PyTorch {torch.__version__.split('+')[0]}. The error is the "
             "largest difference from PyTorch's outputs, over the largest of those, of two sets of inputs, fused and "
             f"unfused. It may be {BOUND:g}. Launches and times are those of the fused program, with `--target=native`. "
             f"Run times are medians of {N_RUNS} runs, of both on {N_THREADS} thread. PyTorch runs op by op. "
             f"The load of the machine's {os.cpu_count()} cores was {os.getloadavg()[0]:.0f}; where it is above their number, "
             "times say little.", "",
             "Images are f32[1, 3, 64, 64]. BERT, GPT-2 and Llama are those of `transformers` with 2 layers of width 64 "
             "and 100 words; their inputs are i64[2, 12]. Where they have dims, the same artifact also runs i64[5, 7].", "",
             "| network | largest error | launches | compile time | run time | PyTorch's |", "|---|---|---|---|---|---|"]
    lines += [network_row(name, why, facts) for name, why, _, facts in rows]
    return "\n".join(lines) + "\n"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    for option in ("--page", "--ops", "--guide", "--store"):
        parser.add_argument(option)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(N_THREADS)
    if options.store:
        store(options.store)
    of_programs = list(run_all(options.fusec, "programs", [*programs(), *solved()]))
    of_ops = list(run_all(options.fusec, "cases of ops", op_networks(), every=False))
    of_networks = list(run_all(options.fusec, "networks", networks(), timed=True)) if options.page else []
    core, failed = core_ops(), any(why for _, why, _, _ in of_programs + of_ops + of_networks)
    failed |= run_refusals() > 0
    failed |= run_commands() > 0
    for op in core:
        if (op in OPS) == (op in NO_ROW):
            print(f"{op} needs a row in aten.py, or a reason there for none")
            failed = True
    if options.ops:
        texts = sorted([text for _, _, p, _ in of_ops if p for text in p.ops.items()], key=lambda text: (-len(text[1]), text))
        write(options.ops, ops_page(core, dict(texts)))
    if options.page:
        write(options.page, networks_page(of_networks))
    if options.guide:
        why = run_guide(options.fusec, options.guide)
        with open(options.guide) as file:
            why = why or ("" if coverage(core) in file.read() else f"it does not state {coverage(core)}")
        print(f"{options.guide}: {why or 'good'}")
        failed |= bool(why)
    return failed


if __name__ == "__main__":
    sys.exit(main())
