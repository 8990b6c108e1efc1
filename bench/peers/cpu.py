"""Programs on CPU threads: fusec beside PyTorch (oneDNN), `torch.compile`, XLA and ONNX Runtime, and
one build of fusec beside another.

    python3 cpu.py --lib LIB[,LIB..] [--threads 16,8,2,1] [--filter REGEX] [--rounds 9]
                   [--peers torch,compile,xla,ort] [--target cpu-v4] [--prepare] [--json FILE]
                   [--convolutions N --seed S] [--part I/K]

With --convolutions the workloads are N convolutions that convolutions.py draws with seed S. --part
takes every K-th workload, from the I-th on, counted from 0.

LIB is a folder with libfusec.so and libfusert.so. Each number of threads has a process of its own,
which is bound to as many processors. There all contenders take turns, and the least time of each
counts. The ratio is the time of the best peer over that of the first LIB. `--prepare` compiles the
forms of `torch.compile` into its cache, several cases at a time, and measures nothing. Programs of
bf16 are compiled with fast numerics and for `cpu-amx`, in which such products have tile registers,
and so are those of i8, if the machine has AMX. Exit status 1 where results disagree.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]  # convolutions.py is beside it in a kit, else above
import convolutions  # noqa: E402
import cpu_cases  # noqa: E402

SPIN_SECONDS = 0.06  # ONNX Runtime's threads look for work so long after a run, the others' less
ROUND_US = 20e3  # what a contender runs in a round, at least once
MOST_RUNS = 200
LEAST_ROUNDS, MOST_SECONDS = 4, 2.0
WARM_RUNS = 2  # of a contender, before it is clear how many runs fill a round
ROUNDS_OF_ALL, HOPELESS = 2, 4.0  # then a contender that takes so many times as long as the best is
# not timed again


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--lib", default="build")
    parser.add_argument("--threads", default="2,1")
    parser.add_argument("--filter", default="")
    parser.add_argument("--peers", default=",".join(cpu_cases.PEERS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--target", default="cpu-v4")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--json", default="")
    parser.add_argument("--convolutions", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


# ---- one process, one number of threads ----

def bind(n_threads, prepares):
    """To the first processors that this process may use, before any library counts them. Processes
    that prepare share all of them."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < n_threads:
        sys.exit(f"{n_threads} threads, but {len(allowed)} processors")
    os.environ.update(OMP_NUM_THREADS=str(n_threads), JAX_PLATFORMS="cpu")
    if prepares:
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    else:
        os.sched_setaffinity(0, allowed[:n_threads])


def versions():
    """Of the libraries that are there, by name."""
    import importlib
    found = []
    for name in ("torch", "jax", "onnxruntime"):
        try:
            found.append(f"{name} {importlib.import_module(name).__version__}")
        except ImportError:
            found.append(f"no {name}")
    import torch
    return ", ".join(found) + f", oneDNN {'on' if torch.backends.mkldnn.is_available() else 'off'}"


def has_amx():
    with open("/proc/cpuinfo") as file:
        return "amx_tile" in file.read()


def ready(case, args, libraries, n_threads):
    """The contenders, by name, and why others are none."""
    import cpu_contenders
    tensors = cpu_contenders.draw(case)
    target = "cpu-amx" if case.dtype in ("bf16", "i8") and has_amx() else args.target
    named, refused = {}, {}
    for i, lib in enumerate(libraries):
        named[f"fusec{i or ''}"] = cpu_contenders.Fusec(lib, target, case, tensors, n_threads)
    wanted = [peer for peer in args.peers.split(",") if peer in case.peers]
    for name, make in cpu_contenders.peers(case, tensors, n_threads, wanted):
        try:
            named[name] = make()
            named[name].run()
        except Exception as error:  # a peer that lacks a form is no failure of the run
            named.pop(name, None)
            refused[name] = str(error).split("\n")[0][:100] or type(error).__name__
    return named, refused


def differing(named):
    """Names of the contenders whose result is not that of the first peer."""
    import torch
    for one in named.values():
        one.run()
    results = {name: one.result().double() for name, one in named.items()}
    reference = next((y for name, y in results.items() if not name.startswith("fusec")), None)
    if reference is None:
        return []
    return [name for name, y in results.items()
            if not (y - reference).norm() <= 1e-2 * reference.norm()]


def time_all(named, rounds, n_threads):
    """The least microseconds of each. Long programs get fewer rounds."""
    least = dict.fromkeys(named, float("inf"))
    begin = time.perf_counter()
    for turn in range(rounds):
        for name, one in named.items():
            if turn >= ROUNDS_OF_ALL and least[name] > HOPELESS * min(least.values()):
                continue
            time.sleep(SPIN_SECONDS if n_threads > 1 else 0)
            least[name] = min(least[name], one.runs(WARM_RUNS))
            n = max(1, min(MOST_RUNS, int(ROUND_US / max(1.0, least[name]))))
            least[name] = min(least[name], one.runs(n))
        if turn + 1 >= LEAST_ROUNDS and time.perf_counter() - begin > MOST_SECONDS:
            break
    return least


def child(args, cases):
    bind(args.child, args.prepare)
    import torch
    import fusert
    torch.set_grad_enabled(False)
    torch.set_num_threads(args.child)
    libraries = [fusert.Libraries(folder) for folder in args.lib.split(",")]
    print(json.dumps({"versions": versions()}), flush=True)
    for case in cases:
        named, refused = ready(case, args, libraries, args.child)
        row = {"case": case.name, "group": case.group, "threads": args.child, "refused": refused}
        if not args.prepare:
            row["wrong"] = differing(named)
            row["us"] = time_all(named, args.rounds, args.child)
        for one in named.values():
            one.close()
        print(json.dumps(row), flush=True)


# ---- all of them ----

def start(args, n_threads, pattern):
    command = [sys.executable, os.path.abspath(__file__), "--child", str(n_threads), "--lib", args.lib,
               "--filter", pattern, "--peers", args.peers, "--rounds", str(args.rounds),
               "--target", args.target, "--convolutions", str(args.convolutions),
               "--seed", str(args.seed), "--part", args.part]
    command += ["--prepare"] if args.prepare else []
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def prepare(args, cases, counts):
    """Compiles in a process for each case and number of threads, as many at a time as there are
    processors."""
    left = [(n, case) for n in counts for case in cases if "compile" in case.peers]
    running = []
    while left or running:
        while left and len(running) < len(os.sched_getaffinity(0)):
            n, case = left.pop()
            running.append(start(args, n, "^" + re.escape(case.name) + "$"))
        running[0].communicate()
        running.pop(0)


def best_peer(us):
    theirs = {name: t for name, t in us.items() if not name.startswith("fusec")}
    return min(theirs, key=theirs.get) if theirs else None


def ratio(row):
    peer = best_peer(row["us"])
    return row["us"][peer] / row["us"]["fusec"] if peer else float("nan")


def threads(n):
    return f"{n} thread" + "s" * (n > 1)


def print_table(rows, counts):
    print("| | " + " | ".join(f"{threads(n)}: fusec | best peer | ratio" for n in counts) + " |")
    print("|---" * (1 + 3 * len(counts)) + "|")
    for name in dict.fromkeys(row["case"] for row in rows):
        cells = []
        for n in counts:
            row = next((r for r in rows if r["case"] == name and r["threads"] == n), None)
            peer = row and best_peer(row["us"])
            cells += [f"{row['us']['fusec']:.4g}", f"{row['us'][peer]:.4g} {peer}",
                      f"{ratio(row):.2f}"] if peer else ["", "", ""]
        print(f"| {name} | " + " | ".join(cells) + " |")


def print_groups(rows, counts, groups):
    print("\n| best peer's time over fusec's | wanted: mean, worst | "
          + " | ".join(map(threads, counts)) + " |")
    print("|---" * (2 + len(counts)) + "|")
    for key, group in groups.items():
        cells = []
        for n in counts:
            ratios = [ratio(r) for r in rows
                      if r["group"] == key and r["threads"] == n and best_peer(r["us"])]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0
            cells.append(f"{mean:.2f}, {min(ratios):.2f}" if ratios else "")
        wanted = ", ".join(f"{x}" for x in (group.mean, group.worst) if x)
        if any(cells):
            print(f"| {group.title} | {wanted} | " + " | ".join(cells) + " |")


def collect(args, counts):
    rows, status = [], 0
    for n in counts:
        process = start(args, n, args.filter)
        for line in process.stdout:
            row = json.loads(line)
            if "versions" in row:
                print(f"{n} threads: {row['versions']}", flush=True)
                continue
            rows.append(row)
            times = "  ".join(f"{name} {us:.1f}" for name, us in row["us"].items())
            print(f"{n} {row['case']:34} {ratio(row):6.2f}  {times}", flush=True)
            for name, why in row["refused"].items():
                print(f"    no {name}: {why}")
            if row["wrong"]:
                print(f"    DIFFERENT: {', '.join(row['wrong'])}")
                status = 1
        status |= process.wait() != 0
    return rows, status


def chosen(args):
    """The workloads."""
    cases = cpu_cases.CASES
    if args.convolutions:
        cases = [cpu_cases.convolution(drawn)
                 for drawn in convolutions.draw(args.convolutions, args.seed)]
    first, step = map(int, args.part.split("/"))
    return [case for case in cases if re.search(args.filter, case.name)][first::step]


def main():
    args = parse()
    cases = chosen(args)
    if args.child:
        child(args, cases)
        return 0
    counts = [int(n) for n in args.threads.split(",")]
    if args.prepare:
        prepare(args, cases, counts)
        return 0
    rows, status = collect(args, counts)
    print()
    print_table(rows, counts)
    print_groups(rows, counts, cpu_cases.GROUPS)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)
    return status


if __name__ == "__main__":
    sys.exit(main())
