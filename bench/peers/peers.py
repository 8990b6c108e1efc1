#!/usr/bin/env python3
"""Times fusec beside PyTorch, torch.compile, cuBLASLt, SDPA and XLA on one GPU: README.md.

  python3 bench/peers/peers.py --lib build [--filter REGEX] [--budget-seconds N] [--out DIR]

Exit status: 0; 1 when something failed or was wrong; 2 for wrong use; 3 when the time budget left
rows out.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the sources stay as they are

import fusert  # noqa: E402
import networks  # noqa: E402
import workloads  # noqa: E402
from cases import PEERS  # noqa: E402


def regex(text):
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"`{text}` is no regex: {error}") from error
    return text


def parse(argv):
    parser = argparse.ArgumentParser(description="time fusec beside its peers on one GPU")
    parser.add_argument("--lib", default="build",
                        help="folder of libfusec.so and libfusert.so (build)")
    parser.add_argument("--filter", default="", type=regex,
                        help="workloads whose name this regex finds")
    parser.add_argument("--budget-seconds", type=float, default=0,
                        help="begin nothing that would not end in this time")
    parser.add_argument("--out", default=".", help="folder for peers.json and roofline.svg")
    parser.add_argument("--peers", default=",".join(PEERS), help="which (eager,lt,...)")
    parser.add_argument("--layouts", default="kn,nk", help="of right operands")
    parser.add_argument("--autotune", default=".", type=regex,
                        help="regex of the workloads with a matmul for which torch.compile may"
                        " search (max-autotune); the others are compiled as they come")
    parser.add_argument("--rounds", type=int, default=11, help="of timing, at least")
    parser.add_argument("--rotate-mib", type=int, default=256,
                        help="of buffers that are taken in turn, more than the cache holds")
    parser.add_argument("--max-sets", type=int, default=64, help="sets of buffers at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", help="of fusec (the device's own)")
    parser.add_argument("--fast", action="store_true",
                        help="fusec with --numerics=fast too, in a column of its own")
    parser.add_argument("--shapes", type=int, default=0, metavar="N",
                        help="N random shapes of relu(x @ w + b) instead, against cuBLASLt")
    parser.add_argument("--symbolic", action="store_true",
                        help="with --shapes: one artifact with symbolic extents for all")
    parser.add_argument("--multiple", type=int, default=1, metavar="N",
                        help="with --shapes: extents that are multiples of it; of 1: every second"
                        " shape all odd")
    parser.add_argument("--list", action="store_true", help="the workloads")
    parser.add_argument("--compile-only", action="store_true",
                        help="source to PTX and no more; needs no GPU")
    parser.add_argument("--keep", metavar="DIR",
                        help="with --compile-only: write each source and its PTX there")
    options = parser.parse_args(argv)
    options.peers = [p for p in options.peers.split(",") if p]
    options.layouts = options.layouts.split(",")
    unknown = [p for p in options.peers if p not in PEERS]
    if unknown:
        parser.error(f"there is no peer `{unknown[0]}` but {', '.join(PEERS)}")
    if not set(options.layouts) <= {"kn", "nk"}:
        parser.error("a layout is kn or nk")
    return options


def keep(folder, name, source, artifact):
    os.makedirs(folder, exist_ok=True)
    base = os.path.join(folder, name.replace(" ", "-").replace("^", ""))
    with open(base + ".g", "w") as file:
        file.write(source)
    with open(base + ".ptx", "wb") as file:
        file.write(artifact)


def compile_only(libraries, chosen, options):
    """Milliseconds from source to PTX, the least of three, for each workload and layout."""
    n_failed = 0
    for workload in chosen:
        for layout in workload.layouts:
            if layout and layout not in options.layouts:
                continue
            name = f"{workload.name} {layout}".strip()
            try:
                source, times = workload.build(layout).source, []
                for _ in range(3):
                    begin = time.perf_counter()
                    artifact = libraries.compile(source, options.target or "sm_90a", "workload.g")
                    times.append(1e3 * (time.perf_counter() - begin))
                if options.keep:
                    keep(options.keep, name, source, artifact)
                print(f"{name:34} {min(times):8.1f} ms {len(artifact):9} bytes", flush=True)
            except ImportError as error:
                print(f"{name:34} left out: {error}", flush=True)
            except fusert.Error as error:
                n_failed += 1
                print(f"{name:34} FAILED {str(error).splitlines()[0]}\n{source}", flush=True)
    return 1 if n_failed else 0


def without_caches():
    """Every compiler starts from nothing: a new folder for what cannot be switched off."""
    folder = tempfile.mkdtemp(prefix="peers-cache-")
    os.environ.update({
        "CUDA_CACHE_DISABLE": "1",
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    })
    return folder


def main(argv):
    options = parse(argv)
    options.deadline = time.monotonic() + options.budget_seconds if options.budget_seconds \
        else float("inf")
    chosen = [w for w in workloads.TABLE + networks.TABLE if re.search(options.filter, w.name)]
    if options.list:
        for workload in chosen:
            print(workload.name)
        return 0
    if not chosen and not options.shapes:
        print(f"no workload's name matches `{options.filter}`: --list", file=sys.stderr)
        return 2
    try:
        libraries = fusert.Libraries(options.lib)
    except OSError as error:
        print(f"--lib: {error}", file=sys.stderr)
        return 2
    if options.compile_only:
        return compile_only(libraries, chosen, options)
    os.makedirs(options.out, exist_ok=True)
    folder = without_caches()
    try:
        import measure  # torch reads the environment when it is imported
        if options.shapes:
            import shapes
            return shapes.run(libraries, options)
        return measure.run(libraries, chosen, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
