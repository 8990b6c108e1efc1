"""Rows far off the diagonal, fused and unfused, predicted beside measured: few long ones, many short.

    python3 bench/corners.py make FOLDER            here: artifacts for any extents, predictions
    python3 corners.py measure FOLDER LIB           on the GPU machine, with PyTorch; LIB holds
                                                    libfusec.so and libfusert.so: times.json
    python3 bench/corners.py report FOLDER          here: the table of what FOLDER holds

The part on the GPU machine needs bench/peers/fusert.py beside it. Times are medians of runs between
two events, each behind a sum that fills the caches with something else, as predictions take inputs
to be cold; a sum, since what was written there would have to be written back meanwhile. The results
of both are compared bit by bit.
"""

import json
import os
import statistics
import subprocess
import sys

TARGET = "sm_90a"
GRAPHS = {"softmax": "graph g(x: f32[B, C]) -> (y: f32[B, C]) { y = softmax(x) }",
          "layernorm": "graph g(x: f32[B, C], g: f32[C], b: f32[C]) -> (y: f32[B, C]) "
                       "{ y = layernorm(x, g, b) }",
          "logsumexp": "graph g(x: f32[B, C]) -> (y: f32[B]) { y = logsumexp(x, axis=1) }"}
EXTENTS = [(b, c) for c in (4096, 32768, 128256) for b in (1, 2, 8, 64)]
EXTENTS += [(65536, 64), (1, 50257), (8, 200000), (1, 1048576), (64, 1048576), (256, 65536)]
RUNS, FLUSH_BYTES = 15, 512 << 20


def make(folder):
    os.makedirs(folder, exist_ok=True)
    fusec, table = "build/fusec", []
    for name, body in GRAPHS.items():
        path = os.path.join(folder, name)
        with open(path + ".g", "w") as file:
            file.write(f"dim B in 1..1048576\ndim C in 1..1048576\n{body}\n")
        for ending, options in ((".ptx", []), ("_apart.ptx", ["--no-fuse"])):
            subprocess.run([fusec, path + ".g", "-o", path + ending, f"--target={TARGET}"] + options,
                           check=True)
        for b, c in EXTENTS:
            told = subprocess.run([fusec, path + ".g", "--explain", "--json", f"--target={TARGET}",
                                   f"--dim=B={b}", f"--dim=C={c}"],
                                  capture_output=True, text=True, check=True)
            totals = json.loads(told.stdout)["graphs"][0]["totals"]
            table.append({"graph": name, "B": b, "C": c, "us": totals["us"],
                          "apart_us": totals["unfused_us"], "launches": totals["launches"]})
    with open(os.path.join(folder, "table.json"), "w") as file:
        json.dump(table, file, indent=1)


def read(folder, name):
    with open(os.path.join(folder, name)) as file:
        return json.load(file)


def measure_one(run, stream, flush, torch):
    times = []
    for _ in range(RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            flush.sum()
            begin.record()
            run.run(stream.cuda_stream)
            end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times[3:])


def measure(folder, lib):
    import torch
    import fusert
    libraries, stream, times = fusert.Libraries(lib), torch.cuda.Stream(), []
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")
    programs = {}
    for row in read(folder, "table.json"):
        name, b, c = row["graph"], row["B"], row["C"]
        tensors = {"x": torch.randn(b, c, device="cuda")}
        if name == "layernorm":
            tensors |= {n: torch.randn(c, device="cuda") for n in ("g", "b")}
        us, results = [], []
        for ending in (".ptx", "_apart.ptx"):
            if name + ending not in programs:
                with open(os.path.join(folder, name + ending), "rb") as file:
                    programs[name + ending] = libraries.program(file.read())
            y = torch.empty([b] if name == "logsumexp" else [b, c], device="cuda")
            bound = {n: (t.data_ptr(), "f32", list(t.shape)) for n, t in (tensors | {"y": y}).items()}
            torch.cuda.synchronize()
            us.append(measure_one(programs[name + ending].exec(bound), stream, flush, torch))
            results.append(y.view(torch.int32))
        times.append(us + [bool(torch.equal(*results))])
    with open(os.path.join(folder, "times.json"), "w") as file:
        json.dump(times, file)


def report(folder):
    rows = list(zip(read(folder, "table.json"), read(folder, "times.json")))
    print("| graph | B | C | launches | fused us: predicted | measured | unfused: predicted | "
          "measured | fused / unfused measured |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row, (us, apart, is_same) in rows:
        print(f"| {row['graph']} | {row['B']} | {row['C']} | {row['launches']} | {row['us']:.1f} | "
              f"{us:.1f} | {row['apart_us']:.1f} | {apart:.1f} | {us / apart:.2f}"
              f"{'' if is_same else ' DIFFERS'} |")
    for what, key, at in (("fused", "us", 0), ("unfused", "apart_us", 1)):
        ratios = [row[key] / times[at] for row, times in rows]
        print(f"{what}, predicted over measured: of {len(ratios)}, "
              f"{sum(abs(r - 1) <= 0.25 for r in ratios)} within 25 %; {min(ratios):.2f} to "
              f"{max(ratios):.2f}, median {statistics.median(ratios):.2f}")
    slower = sum(times[0] > 1.02 * times[1] for _, times in rows)
    print(f"fused slower than unfused by more than 2 %: {slower} of {len(rows)}; "
          f"different bits: {sum(not times[2] for _, times in rows)}")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in ("make", "report"):
        {"make": make, "report": report}[sys.argv[1]](sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "measure":
        measure(*sys.argv[2:])
    else:
        sys.exit(__doc__)
