"""Exports networks to ONNX and compares what fusec computes on the CPU, fused and unfused, with onnxruntime.

export_tests.py FUSEC [--page FILE] [--only PATTERN] [--store FOLDER]: prints a line per network; --page writes the
table, and --store the small networks that tests/onnx/test_nodes.c runs.

The unfused program is compiled from the model, the fused one from the source that `fusec import` writes of it.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx
import onnxruntime
import torch

from export_cases import cases, small
from node_tests import identifier, record, save

BOUNDS = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-4, np.dtype(np.float16): 1e-2}  # of the largest
THREADS = (1, 2)
N_ROUNDS, N_RUNS = 5, 10
MOST_BYTES = 1 << 20  # of a stored network


class Wrong(Exception):
    """What a comparison found."""


class NoPeer(Exception):
    """onnxruntime does not run the model."""


def call(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Wrong(next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:300]))
    return done.stdout


def compare(name, got, wanted):
    """The largest difference over the largest value."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Wrong(f"{name} is {got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}")
    if not wanted.any():
        raise Wrong(f"{name} is zeros, which compare nothing")
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    error = np.abs(g - w).max(initial=0) / np.abs(w).max(initial=0)
    if not error <= BOUNDS.get(wanted.dtype, 0):
        raise Wrong(f"{name} is off by {error:.1e} of the largest")
    return error


def session(path, n_threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = n_threads, 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Exported:
    """A case in a folder: the model, its inputs and onnxruntime's outputs."""

    def __init__(self, case, folder, fusec):
        self.folder, self.fusec, self.model = folder, fusec, f"{folder}/model.onnx"
        case.export(self.model)
        graph = onnx.load(self.model, load_external_data=False).graph
        weights = {tensor.name for tensor in graph.initializer}
        self.inputs = [value.name for value in graph.input if value.name not in weights]
        self.outputs = [value.name for value in graph.output]
        self.feeds = [dict(zip(self.inputs, arrays)) for arrays in case.sets]
        try:
            runs = session(self.model, 1)
            self.wanted = [runs.run(self.outputs, feed) for feed in self.feeds]
        except Exception as why:
            raise NoPeer(str(why).splitlines()[0].split(" : ")[-1]) from why
        for k, feed in enumerate(self.feeds):
            for name, array in feed.items():
                save(self.file(k, name), array)

    def file(self, k, name):
        return f"{self.folder}/set{k}_{identifier(name)}.npy"

    def given(self, k):
        return [f"--input={identifier(name)}=@{self.file(k, name)}" for name in self.inputs]

    def compile(self, source, *how):
        artifact = f"{self.folder}/model.o"
        start = time.perf_counter()
        call([self.fusec, source, "-o", artifact, "--target=native", *how])
        return artifact, time.perf_counter() - start

    def run(self, artifact):
        """The largest error of all sets."""
        worst = 0.0
        for k, wanted in enumerate(self.wanted):
            names = [identifier(name) for name in self.outputs]
            call([self.fusec, "run", artifact, "--device=cpu", *self.given(k),
                  *(f"--output={name}=@{self.folder}/got_{name}.npy" for name in names)])
            for name, array in zip(names, wanted, strict=True):
                worst = max(worst, compare(name, np.load(f"{self.folder}/got_{name}.npy"), array))
        return worst

    def launches(self, artifact):
        return json.loads(call([self.fusec, "bench", artifact, "--device=cpu", "--runs=1", "--json",
                                *self.given(0)]))["launches"]

    def time(self, artifact, n_threads):
        """Launches, and the least time of a run in ms, of fusec and of onnxruntime, whose runs alternate."""
        runs, ours, theirs = session(self.model, n_threads), [], []
        for _ in range(N_ROUNDS):
            report = json.loads(call([self.fusec, "bench", artifact, "--device=cpu", f"--threads={n_threads}",
                                      f"--runs={N_RUNS}", "--json", *self.given(0)]))
            ours.append(report["min_us"] / 1e3)
            for _ in range(N_RUNS):
                start = time.perf_counter()
                runs.run(self.outputs, self.feeds[0])
                theirs.append((time.perf_counter() - start) * 1e3)
        return report["launches"], min(ours), min(theirs)


def attempt(case, folder, fusec):
    """The row's cells after the name, and whether the network passes."""
    try:
        it = Exported(case, folder, fusec)
        artifact, _ = it.compile(it.model, "--no-fuse")
        error = it.run(artifact)
        call([fusec, "import", it.model, "-o", f"{folder}/source.g"])
        artifact, seconds = it.compile(f"{folder}/source.g")
        error = max(error, it.run(artifact))
        timed = [it.time(artifact, n) for n in THREADS]
    except NoPeer as why:
        return [f"onnxruntime has none: {why}".replace("|", "/")] + [""] * (2 + 2 * len(THREADS)), None
    except (Wrong, subprocess.TimeoutExpired) as why:
        return [str(why).replace(folder + "/", "").replace("|", "/")] + [""] * (2 + 2 * len(THREADS)), False
    times = [f"{t:.3g} ms" for _, ours, theirs in timed for t in (ours, theirs)]
    return [f"{error:.1e}", str(timed[0][0]), f"{seconds * 1e3:.0f} ms", *times], True


class Stored:
    """A case as node_tests.record takes it, of one set of inputs."""

    rtol = 0.0

    def __init__(self, it, name, k):
        self.name, self.model = name, onnx.load(it.model)
        self.data_sets = [([it.feeds[k][name] for name in it.inputs], it.wanted[k])]
        self.atol = float(min(BOUNDS.get(a.dtype, 1) * np.abs(a).max() for a in it.wanted[k]))


def store(folder, fusec):
    """Writes each small network with inputs and onnxruntime's outputs."""
    for case in small():
        name = identifier(case.name)
        torch.manual_seed(1)
        with tempfile.TemporaryDirectory() as work:
            it = Exported(case, work, fusec)
            data = b"".join(record(Stored(it, name, k), ()) for k in range(len(it.feeds)))
        assert len(data) < MOST_BYTES, name
        with open(f"{folder}/{name}.bin", "wb") as file:
            file.write(data)


def page_text(rows):
    good = sum(passes is True for _, _, passes in rows)
    tried = sum(passes is not None for _, _, passes in rows)
    heads = ["network", "largest error", "launches", "compile time"]
    for n in THREADS:
        threads = "1 thread" if n == 1 else f"{n} threads"
        heads += [f"run time, {threads}", f"onnxruntime's, {threads}"]
    lines = ["# Networks exported to ONNX", "",
             f"`make onnx-exports` writes this page. Networks of torchvision, timm, transformers and diffusers with "
             "random weights, and trained pipelines of scikit-learn, exported to ONNX, on the CPU, beside onnxruntime "
             f"{onnxruntime.__version__}. The error is the largest difference from onnxruntime's outputs, over the "
             "largest of those, of all sets of inputs, fused and unfused. It may be 0.0001 in f32, and 0.01 in f16, which "
             "onnxruntime computes in f32 in part. Launches and times are those of the fused program, with "
             f"`--target=native`. A run time is the least of {N_ROUNDS} times {N_RUNS} runs, which alternate with onnxruntime's, on "
             f"{os.cpu_count()} cores.", "",
             f"{good} of {tried} networks that onnxruntime runs agree with it.", "",
             "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells, _ in rows]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--page")
    parser.add_argument("--only", default="")
    parser.add_argument("--store")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    if options.store:
        store(options.store, os.path.abspath(options.fusec))
    for case in cases():
        if not re.search(options.only, case.name):
            continue
        torch.manual_seed(1)
        with tempfile.TemporaryDirectory() as folder:
            cells, passes = attempt(case, folder, os.path.abspath(options.fusec))
        print(f"{case.name}: {', '.join(cell for cell in cells if cell)}", flush=True)
        rows.append((case.name, cells, passes))
    if options.page:
        with open(options.page, "w") as page:
            page.write(page_text(rows))
    return any(passes is False for _, _, passes in rows)


if __name__ == "__main__":
    sys.exit(main())
