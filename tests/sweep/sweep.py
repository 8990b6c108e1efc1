"""Compares every op, built-in function and function of the prelude with NumPy and PyTorch, on random cases.

sweep.py LIBRARIES [--target=NAME] [--cases=N] [--seed=N] [--only=NAME,..] [--state=FILE]
         [--page=FILE] [--store=FILE] [--show] [--no-fuse]

LIBRARIES is the folder of libfusec.so and libfusert.so. The target is `cpu`, or one that the GPU at hand runs. With
LD_LIBRARY_PATH=build/emulator that is the emulator. The names are those of docs/OPS.md: one without a case is an error.
With --state, counts are kept in a file, and a call goes on where the last one of the same compiler and cases ended.
--page writes the table, --store small cases of each name for tests/sweep/test_sweep.c. Prints the first cases of a name
that fail, or with --show all, and the counts. With --no-fuse each op is a kernel of its own.
"""
import argparse
import hashlib
import io
import json
import os
import re
import sys
import time
import warnings

import numpy as np
import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
for folder in (os.path.join("bench", "peers"), os.path.join("tests", "onnx")):
    sys.path.insert(0, os.path.join(ROOT, folder))
import fusert
import op_cases
import prelude_cases
import builtin_cases  # adds to the cases of the ops
import loss_cases  # adds to the cases of the prelude
from bounds import Stated
from draw import DTYPES, Draw, decode, encode, rounded
from wire import field

N_TOGETHER = 25  # cases of an artifact for a CPU; a driver compiles all kernels of an artifact for each program
HAS_F8_CORES = ("sm_89", "sm_90a")
N_STORED, MAX_STORED_BYTES = 5, 1600
N_SHOWN = 3  # failures of a name


def names_of_page(page):
    """The names of docs/OPS.md, the bounds of those that have one in ULP, {dtype: (ULP, absolute)}, and those that
    the page states of functions of the prelude."""
    names, bounds, stated = [], {}, {}
    tables = page.split("## Errors found")[0] + page.split("## Casts")[1].split("## Dtypes")[0]
    tables += page.split("## Composites")[1].split("## Fast numerics")[0]
    for line in tables.splitlines():
        found = re.match(r"\| `(\w+)", line)
        if not found or found[1] in names:
            continue
        names.append(found[1])
        cells = line.split(" | ")
        if len(cells) == 3 and "(" in cells[0]:
            stated[found[1]] = Stated(cells[0].strip("| `"), cells[1])
        column = next((c for c in cells[1:4] if c == "exact" or "ULP" in c), "exact")
        absolute = re.search(r"or ([\d.e-]+)(?: \(f64 ([\d.e-]+)\))?", column)
        of = (float((absolute[2 if dtype == "f64" else 1]) or 0) if absolute else 0.0 for dtype in op_cases.FLOATS)
        ulps = dict(re.findall(r"(f64|f32|f16|bf16) (\d+)", column))
        bounds[found[1]] = {d: (float(ulps[d]), a) for d, a in zip(op_cases.FLOATS, of) if d in ulps}
    return names, bounds, stated


def close(name, case, dtype, got, wide, absolute):
    """What is wrong with an output, or "". `absolute`: as in Case."""
    want = rounded(dtype, wide)
    if got.shape != want.shape:
        return f"{name} is of shape {got.shape}, not {want.shape}"
    with np.errstate(all="ignore"):
        good = (got == want) | (np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64)))
        if case.relative or absolute:
            good |= np.abs(got - want) <= absolute + case.relative * np.abs(want)
            edge = DTYPES[dtype].largest * (1 - 2 * case.relative)  # where one of the two may round to infinity
            good |= (np.minimum(np.abs(got), np.abs(wide)) >= edge) & (np.sign(got) == np.sign(wide))
    if good.all():
        return ""
    at = tuple(int(k) for k in np.argwhere(~good)[0])
    n_wrong = np.count_nonzero(~good)
    return f"{name}{list(at)} is {got[at]}, not {np.asarray(wide)[at]}; {n_wrong} of {good.size} are wrong"


class Runner:
    """Compiles and runs cases for one target."""

    def __init__(self, libraries, target, no_fuse):
        self.lib, self.target, self.no_fuse = fusert.Libraries(libraries), target, no_fuse
        artifact = self.lib.compile("graph kept(x: f32[1]) -> (y: f32[1]) {\n  y = x\n}\n", target, "kept.g")
        self.kept = self.lib.program(artifact, "kept")  # while it is open, a GPU keeps its context

    def run(self, artifact, graph, case):
        """What is wrong, or ""."""
        program = self.lib.program(artifact, graph)
        try:
            return self.run_program(program, case)
        finally:
            program.close()

    def run_program(self, program, case):
        held = {name: (dtype, encode(dtype, wide)) for name, (dtype, wide) in case.inputs.items()}
        for name, (dtype, wide) in zip(case.names(), case.outputs):
            held[name] = dtype, np.zeros(np.shape(wide), DTYPES[dtype].numpy)
        at = {name: program.alloc(bits.nbytes) for name, (_, bits) in held.items()}
        for name, (_, bits) in held.items():
            program.put(at[name], bits.ctypes.data, bits.nbytes)
        execution = program.exec({name: (at[name], dtype, bits.shape) for name, (dtype, bits) in held.items()})
        execution.run(None)
        for name in case.names():
            program.get(held[name][1].ctypes.data, at[name], held[name][1].nbytes)
        execution.close()
        for name, address in at.items():
            program.free(address, held[name][1].nbytes)
        absolute = case.absolute + (case.more_on_cores if self.target in HAS_F8_CORES else 0)
        for name, (dtype, wide) in zip(case.names(), case.outputs):
            wrong = close(name, case, dtype, decode(dtype, held[name][1]), wide, absolute)
            if wrong:
                return wrong
        return ""

    def source(self, numbered):
        parts = []
        for k, case in numbered:
            dim = case.batch and k % 2 and f"B{k}"
            parts.append((f"dim {dim} in 0..100000\n" if dim else "") + case.source(f"g{k}", dim or None))
        return "".join(parts)

    def all(self, numbered):
        """(number, case, what is wrong or "") of each case."""
        source = self.source(numbered)
        try:
            artifact = self.lib.compile(source, self.target, "sweep.g", no_fuse=self.no_fuse)
        except fusert.Error as error:
            if len(numbered) == 1:
                return [(*numbered[0], f"{error}")]
            half = len(numbered) // 2
            return self.all(numbered[:half]) + self.all(numbered[half:])
        results = []
        for k, case in numbered:
            try:
                results.append((k, case, self.run(artifact, f"g{k}", case)))
            except fusert.Error as error:
                results.append((k, case, f"{error}"))
        return results


def sweep_name(runner, name, make, options, done):
    """Counts of a name; `done` has those of an earlier call."""
    shown = 0
    while done["n"] < options.cases:
        n_together = N_TOGETHER if options.target.startswith("cpu") else 1
        numbers = range(done["n"], min(done["n"] + n_together, options.cases))
        for k, case, wrong in runner.all([(k, make(Draw(options.seed, name, k))) for k in numbers]):
            done["n"] += 1
            if not wrong:
                continue
            done["failed"].append(k)
            if shown < N_SHOWN or options.show:
                print(f"{name}, case {k}: {wrong}\n{case.source('g')}", flush=True)
            shown += 1
    return done


def stored_array(number, name, bits):
    file = io.BytesIO()
    np.save(file, bits)
    return field(number, field(1, name.encode()) + field(2, file.getvalue()))


def record(name, case):
    """A case as tests/sweep/stored.h reads it: 1 name, 2 source, 3 input, 5 output, 6 and 7 tolerances."""
    data = field(1, name.encode()) + field(2, case.source("g").encode())
    for key, (dtype, wide) in case.inputs.items():
        data += stored_array(3, key, encode(dtype, wide))
    for key, (dtype, wide) in zip(case.names(), case.outputs):
        data += stored_array(5, key, encode(dtype, rounded(dtype, wide)))
    return field(1, data + field(6, float(case.relative)) + field(7, float(case.absolute)))


def write_store(path, makers, seed, failed):
    with open(path, "wb") as file:
        for name, make in makers.items():
            records = []
            for k in range(500):
                if k not in failed[name]:
                    data = record(f"{name} {k}", make(Draw(seed, name, k)))
                    records += [data] if len(data) <= MAX_STORED_BYTES else []
                if len(records) == N_STORED:
                    break
            if len(records) < N_STORED:
                raise SystemExit(f"{name} has {len(records)} cases of at most {MAX_STORED_BYTES} bytes, not {N_STORED}")
            file.write(b"".join(records))


def write_page(path, state, options):
    rows = state["names"]
    total, failed = sum(r["n"] for r in rows.values()), sum(len(r["failed"]) for r in rows.values())
    lines = ["<!-- Generated by tests/sweep/sweep.py: make sweep -->", "# Ops beside NumPy and PyTorch", "",
             "`make sweep` writes this page: random cases of every op, built-in function and function of the prelude, "
             f"for `{options.target}`, beside NumPy {np.__version__} and PyTorch {torch.__version__.split('+')[0]}. A case "
             "draws dtypes, shapes, arguments and contents; the first extent of some is a dim. References are computed "
             "in f64 or in integers. Exact ops must give the rounded reference. Others are held to the bounds of "
             "[OPS.md](../OPS.md), and sums to one that grows with their terms. [tests/sweep](../../tests/sweep) has "
             "the cases.", "",
             f"{total} cases, {total - failed} right.", "", "| name | cases | right |", "|---|---|---|"]
    lines += [f"| `{name}` | {row['n']} | {row['n'] - len(row['failed'])} |" for name, row in rows.items()]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def key_of(options):
    """What counts hold for: the target, the seed, the compiler and the cases."""
    here = os.path.dirname(os.path.abspath(__file__))
    digest = hashlib.sha256()
    modules = "draw", "op_cases", "builtin_cases", "prelude_cases", "loss_cases", "bounds"
    for path in (os.path.join(options.libraries, "libfusec.so"), *(f"{here}/{n}.py" for n in modules)):
        with open(path, "rb") as file:
            digest.update(file.read())
    return f"{options.target}{', no fusion' * options.no_fuse}, seed {options.seed}, {digest.hexdigest()[:16]}"


def with_bound(make, stated):
    """A maker of cases that have the bound which the page states."""
    return lambda draw: stated.apply(make(draw))


def makers_of(names, bounds, stated):
    """The maker of each name's cases."""
    op_cases.add_bounded(bounds)
    cases = {**op_cases.CASES, **prelude_cases.CASES}
    wanted = [n for n in names if n not in prelude_cases.PARTS]
    missing = [n for n in wanted if n not in cases]
    stray = [n for n in [*cases, *prelude_cases.PARTS] if n not in names]
    if missing or stray:
        raise SystemExit(f"without a case: {missing}; no name of docs/OPS.md: {stray}")
    unbounded = [n for n in stated if not stated[n].column]
    if unbounded:
        raise SystemExit(f"without a bound in docs/OPS.md: {unbounded}")
    return {n: with_bound(cases[n], stated[n]) if n in stated else cases[n] for n in wanted}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("libraries")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    for option in ("--only", "--state", "--page", "--store"):
        parser.add_argument(option)
    for option in ("--show", "--no-fuse"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    if options.only and (options.page or options.store):
        parser.error("--page and --store write all names: leave out --only")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with open(os.path.join(ROOT, "docs", "OPS.md")) as page:
        makers = makers_of(*names_of_page(page.read()))
    if options.only:
        makers = {n: m for n, m in makers.items() if n in options.only.split(",")}
    runner = Runner(options.libraries, options.target, options.no_fuse)
    key = key_of(options)
    state = {"key": key, "names": {}}
    if options.state and os.path.exists(options.state):
        with open(options.state) as file:
            before = json.load(file)
        state = before if before["key"] == key else state
    start = time.time()
    for name, make in makers.items():
        state["names"][name] = sweep_name(runner, name, make, options,
                                          state["names"].get(name, {"n": 0, "failed": []}))
        if options.state:
            with open(options.state, "w") as file:
                json.dump(state, file)
    state["names"] = {n: state["names"][n] for n in makers}
    failed = {n: row["failed"] for n, row in state["names"].items()}
    n_failed = sum(map(len, failed.values()))
    n, wrong = sum(row["n"] for row in state["names"].values()), [name for name in failed if failed[name]]
    print(f"beside NumPy and PyTorch, {options.target}: {n} cases of {len(makers)} names, {n_failed} wrong"
          f"{' (' + ', '.join(wrong) + ')' if wrong else ''}, {time.time() - start:.0f} s")
    if options.page:
        write_page(options.page, state, options)
    if options.store:
        write_store(options.store, makers, options.seed, failed)
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
