"""Fused beside unfused: is a plan ever slower than one kernel per op?

    python3 bench/fused.py make FOLDER             here: artifacts of the examples and bench/memory.g
    python3 fused.py measure FOLDER LIB            on the GPU machine, with PyTorch; LIB holds
                                                   libfusec.so and libfusert.so

`measure` needs bench/peers/fusert.py beside it. Both plans take turns, each as a replayed CUDA
graph over sets of buffers that no cache holds together. Exit status 1 when some fused plan takes
more than 2 % longer.
"""

import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

TARGET = "sm_90a"
BOUND = 1.02
SET_BYTES = 128 * 2**20  # of buffers in turn, at least
MAX_SETS, GRAPH_US, ROUNDS = 16, 1500, 25
EXAMPLES = "dsl/examples"
SIZES = {  # of each example: a small and a large one
    "blackscholes": [{"N": 1 << 14}, {"N": 1 << 24}],
    "digits": [{"B": 64}, {"B": 16384}],
    "residual_conv": [{"B": 1}, {"B": 64}],
    "heat2d": [{"H": 512, "W": 512}, {"H": 8192, "W": 8192}],
    "mlp": [{"B": 64}, {"B": 4096}],
    "pointwise": [{"N": 1 << 14}, {"N": 1 << 25}],
    "residual_layernorm": [{"T": 256, "D": 1024}, {"T": 16384, "D": 4096}],
    "softmax": [{"B": 256, "C": 1000}, {"B": 16384, "C": 4096}],
    "transformer": [{"B": 1, "T": 128}, {"B": 8, "T": 1024}],
    "views": [{"B": 16, "T": 128, "H": 64, "V": 1000},
              {"B": 128, "T": 1024, "H": 1024, "V": 100000}],
    "memory": [{}],
}


def make(folder):
    os.makedirs(folder, exist_ok=True)
    rows = []
    for stem, sizes in SIZES.items():
        path = "bench/memory.g" if stem == "memory" else f"{EXAMPLES}/{stem}.g"
        artifacts = [f"{stem}.ptx", f"{stem}-plain.ptx"]
        for artifact, more in zip(artifacts, ([], ["--no-fuse"])):
            subprocess.run(["build/fusec", path, "-o", os.path.join(folder, artifact),
                            f"--target={TARGET}"] + more, check=True)
        with open(path) as file:
            graphs = [line[6:].split("(")[0].strip() for line in file if line[:6] == "graph "]
        rows += [{"artifacts": artifacts, "graph": graph, "dims": dims}
                 for graph in graphs for dims in sizes]
    with open(os.path.join(folder, "rows.json"), "w") as file:
        json.dump(rows, file, indent=1)


class Plan:
    """One artifact's graph: bound to several sets of buffers, captured, timed."""

    def __init__(self, torch, fusert, program, dims, stream):
        self.torch, self.fusert, self.program, self.stream = torch, fusert, program, stream
        tensors = list(program.tensors(dims))
        for name, role, dtype, shape in tensors:
            if role == fusert.ROLE_PARAM:
                data = self.fill(shape, dtype).cpu().contiguous()
                program.set_param(name, bytes(data.view(torch.uint8).numpy().tobytes()))
        bound = [t for t in tensors if t[1] != fusert.ROLE_PARAM]
        n_bytes = sum(self.fill(shape, dtype).nbytes for _, _, dtype, shape in bound)
        self.sets = [self.bind(bound)
                     for _ in range(max(2, min(MAX_SETS, -(-SET_BYTES // max(1, n_bytes)))))]
        self.graph, self.n_runs = None, len(self.sets)
        self.capture(1)
        n_passes = int(GRAPH_US / max(1e-3, min(self.us() for _ in range(3)) * self.n_runs))
        if n_passes > 1:
            self.capture(min(n_passes, 64))

    def fill(self, shape, dtype):
        torch = self.torch
        kinds = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
                 "bf16": torch.bfloat16, "i32": torch.int32, "bool": torch.bool}
        made = torch.empty(shape, dtype=kinds[dtype], device="cuda")
        if dtype == "i32":
            return made.random_(0, 1000)
        return made.random_(0, 2) if dtype == "bool" else made.uniform_(0.1, 1)

    def bind(self, tensors):
        held = {name: (self.fill(shape, dtype), dtype) for name, _, dtype, shape in tensors}
        bound = {name: (t.data_ptr(), dtype, list(t.shape)) for name, (t, dtype) in held.items()}
        return self.program.exec(bound), held

    def capture(self, n_passes):
        torch = self.torch
        self.sets[0][0].run(self.stream.cuda_stream)
        self.stream.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            for _ in range(n_passes):
                for one, _ in self.sets:
                    one.run(self.stream.cuda_stream)
        self.n_runs = n_passes * len(self.sets)
        self.us()

    def us(self):
        """Of one run, over one replay."""
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self.torch.cuda.stream(self.stream):
            begin.record()
            self.graph.replay()
            end.record()
        end.synchronize()
        return 1e3 * begin.elapsed_time(end) / self.n_runs

    def close(self):
        self.graph = None
        for one, _ in self.sets:
            one.close()
        self.sets = []
        self.program.close()


def measure_row(torch, fusert, programs, row, stream):
    """(launches, microseconds) of the fused and of the plain plan."""
    plans = []
    try:
        for program in programs:
            plans.append(Plan(torch, fusert, program, row["dims"], stream))
        times = [[], []]
        for turn in range(ROUNDS):
            for i in (0, 1) if turn % 2 else (1, 0):
                times[i].append(plans[i].us())
        return [(plan.program.n_launches(), statistics.median(t)) for plan, t in zip(plans, times)]
    finally:
        for plan in plans:
            plan.close()
        torch.cuda.empty_cache()


def measure(folder, lib):
    import torch
    import fusert
    libraries, stream = fusert.Libraries(lib), torch.cuda.Stream()
    torch.zeros(1, device="cuda")
    with open(os.path.join(folder, "rows.json")) as file:
        rows = json.load(file)

    def load(artifact, graph):
        torch.cuda.set_device(0)
        with open(os.path.join(folder, artifact), "rb") as file:
            return libraries.program(file.read(), graph)

    def warm(artifact, graph):  # the driver compiles on several processors, and keeps the code
        load(artifact, graph).close()

    print("| graph | dims | launches unfused | fused | us unfused | us fused | fused / unfused |")
    print("|---|---|---|---|---|---|---|")
    slow = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(warm, *zip(*{a: row["graph"] for row in rows
                                   for a in row["artifacts"]}.items())))
        for row in rows:
            dims = ", ".join(f"{n} = {v}" for n, v in row["dims"].items())
            try:
                programs = [load(artifact, row["graph"]) for artifact in row["artifacts"]]
                fused, plain = measure_row(torch, fusert, programs, row, stream)
            except (fusert.Error, RuntimeError) as error:
                print(f"| {row['graph']} | {dims} | {error} |", flush=True)
                slow.append(row["graph"])
                continue
            ratio = fused[1] / plain[1]
            print(f"| {row['graph']} | {dims} | {plain[0]} | {fused[0]} | {plain[1]:.2f} | "
                  f"{fused[1]:.2f} | {ratio:.3f} |", flush=True)
            if not ratio <= BOUND:
                slow.append(row["graph"])
    print(f"{len(rows)} rows, {len(slow)} slower by more than 2 %: {', '.join(slow) or 'none'}")
    return bool(slow)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "make":
        make(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "measure":
        sys.exit(measure(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
