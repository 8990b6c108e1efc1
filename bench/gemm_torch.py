"""Matrix products of the compiler beside PyTorch's on one GPU, on the same buffers and streams.

    make gpu-kit                                                         # here
    python3 bench/gemm_torch.py FUSEC LIBFUSERT [check[:N[:SEED]]] [time[:DTYPE]]    # there

FUSEC is the compiler (the kit under that name), LIBFUSERT the runtime's shared library.

check: products of random shapes, layouts, batches and epilogues, between guard bands, outputs
poisoned. Target sm_90a must agree to the bit with target sm_90, whose tensor core instructions are
others, and with itself in a second run; and with float64 up to rounding.

time: bias and relu in bf16 or DTYPE, replayed as CUDA graphs in short bursts after an idle pause, contenders in
random order, buffers rotating. The ratio is torch.mm's time (without epilogue) over ours.
"""
import ctypes
import math
import os
import random
import subprocess
import sys
import tempfile
import time

import torch

GUARD = 4096
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
MAX_ERROR = {"bf16": 2e-2, "f16": 3e-3, "f32": 1e-5}
TFLOPS = {"bf16": 700, "f16": 700, "f32": 50}  # about, to choose how long to run
EPILOGUES = {
    "none": ("", "P", lambda p, c, t: p),
    "bias, relu": ("c", "relu(P + c)", lambda p, c, t: torch.relu(p + c)),
    "bias, gelu, residual": ("ct", "gelu(P + c) + t",
                             lambda p, c, t: torch.nn.functional.gelu(p + c) + t),
}


class Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int), ("cuda", ctypes.c_int32),
                ("message", ctypes.c_char * 512)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("dims", ctypes.c_int64 * 8)]


class Runtime:
    def __init__(self, path):
        self.lib = ctypes.CDLL(os.path.abspath(path))
        self.lib.frt_dtype_name.restype = ctypes.c_char_p
        names = [self.lib.frt_dtype_name(i) for i in range(16)]
        self.dtypes = {name.decode(): i for i, name in enumerate(names) if name}

    def call(self, function, *args):
        error = Error(size=ctypes.sizeof(Error))
        if getattr(self.lib, function)(*args, ctypes.byref(error)):
            raise RuntimeError(error.message.decode())


class Program:
    """A graph on the current device; prepare() binds tensors, run() enqueues."""

    def __init__(self, runtime, path, dtype):
        self.runtime, self.dtype = runtime, runtime.dtypes[dtype]
        module, self.program = ctypes.c_void_p(), ctypes.c_void_p()
        runtime.call("frt_module_load_file", path.encode(), ctypes.byref(module))
        runtime.call("frt_program_create", module, None, None, ctypes.byref(self.program))

    def prepare(self, tensors):
        execution = ctypes.c_void_p()
        self.runtime.call("frt_exec_create", self.program, ctypes.byref(execution))
        for name, value in tensors.items():
            dims = (ctypes.c_int64 * 8)(*value.shape)
            tensor = Tensor(value.data_ptr(), self.dtype, value.dim(), dims)
            self.runtime.call("frt_bind", execution, name.encode(), ctypes.byref(tensor))
        self.runtime.call("frt_prepare", execution)
        return execution

    def run(self, execution, stream=0):
        self.runtime.call("frt_run", execution, ctypes.c_void_p(stream))


def source(dtype, batch, m, n, k, left_turned, right_turned, epilogue):
    takes, text, _ = EPILOGUES[epilogue]
    front = "".join(f"{b}, " for b in batch)
    rank = len(batch)
    turn = str([*range(rank), rank + 1, rank])
    left = f"transpose(a, perm={turn})" if left_turned else "a"
    right = "b" if right_turned else f"transpose(b, perm={turn})"
    inputs = [f"a: {dtype}[{front}{k if left_turned else m}, {m if left_turned else k}]",
              f"b: {dtype}[{front}{k if right_turned else n}, {n if right_turned else k}]"]
    inputs += [f"c: {dtype}[{n}]"] if "c" in takes else []
    inputs += [f"t: {dtype}[{m}, {n}]"] if "t" in takes else []
    body = text.replace("P", f"{left} @ {right}", 1)
    return f"graph g({', '.join(inputs)}) -> (y: {dtype}[{front}{m}, {n}]) {{\n  y = {body}\n}}\n"


def compile_to(fusec, text, target, folder):
    path = os.path.join(folder, f"{abs(hash((text, target)))}")
    with open(path + ".g", "w") as file:
        file.write(text)
    subprocess.run([fusec, path + ".g", f"--target={target}", "-o", path + ".ptx"], check=True)
    return path + ".ptx"


def guarded(shape, dtype, fill):
    """A tensor between guard bands of NaN."""
    whole = torch.full((math.prod(shape) + 2 * GUARD,), math.nan, dtype=dtype, device="cuda")
    inner = whole[GUARD:len(whole) - GUARD].view(shape)
    if fill:
        inner.copy_(torch.randn(shape, device="cuda"))
    return whole, inner


def random_case(rng):
    batch = rng.choice([(), (), (3,), (2, 3)])
    m, n, k = (rng.randint(1, 1500 if not batch else 300) for _ in range(3))
    left_turned, right_turned = rng.random() < 0.5, rng.random() < 0.5
    if rng.random() < 0.8:  # pitches that tensor maps take
        k = k if left_turned and right_turned else -(-k // 8) * 8
        m = -(-m // 8) * 8 if left_turned else m
        n = -(-n // 8) * 8 if right_turned else n
    return (rng.choice(list(DTYPES)), batch, m, n, k, left_turned, right_turned,
            rng.choice(list(EPILOGUES)))


def check_case(runtime, fusec, folder, case):
    dtype, batch, m, n, k, left_turned, right_turned, epilogue = case
    takes, _, reference = EPILOGUES[epilogue]
    shapes = {"a": (*batch, k, m) if left_turned else (*batch, m, k),
              "b": (*batch, k, n) if right_turned else (*batch, n, k), "c": (n,), "t": (m, n)}
    inputs = {name: guarded(shapes[name], DTYPES[dtype], True)[1] for name in "ab" + takes}
    programs = [Program(runtime, compile_to(fusec, source(*case), target, folder), dtype)
                for target in ("sm_90a", "sm_90")]
    outputs = []
    for program in (programs[0], programs[1], programs[0]):
        whole, y = guarded((*batch, m, n), DTYPES[dtype], False)
        program.run(program.prepare({**inputs, "y": y}))
        torch.cuda.synchronize()
        if not whole[:GUARD].isnan().all() or not whole[len(whole) - GUARD:].isnan().all():
            return "writes outside its output"
        outputs.append(y)
    a, b = inputs["a"].double(), inputs["b"].double()
    product = (a.mT if left_turned else a) @ (b if right_turned else b.mT)
    expected = reference(product, *(inputs[x].double() if x in takes else 0 for x in "ct"))
    error = ((outputs[0].double() - expected).norm() / expected.norm()).item()
    if not error < MAX_ERROR[dtype]:
        return f"relative error {error}"
    bits = [y.view(torch.uint8) for y in outputs]
    return None if bits[0].equal(bits[1]) and bits[0].equal(bits[2]) else "bits differ"


def check(runtime, fusec, folder, n_cases, seed):
    rng, n_wrong = random.Random(seed), 0
    torch.manual_seed(seed)
    for _ in range(n_cases):
        case = random_case(rng)
        wrong = check_case(runtime, fusec, folder, case)
        if wrong:
            print(case, wrong)
            n_wrong += 1
    print(f"{n_cases - n_wrong} passed, {n_wrong} failed, seed {seed}")
    return n_wrong == 0


def captured(run, n):
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        run(0, stream.cuda_stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(n):
            run(i, stream.cuda_stream)
    return graph


def burst(graph, n):
    """Microseconds of one of the graph's n runs."""
    torch.cuda.synchronize()
    time.sleep(0.01)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / n


def time_shape(runtime, fusec, folder, dtype, m, n, k, right_turned):
    n_sets = max(2, min(12, int(3e8 // (DTYPES[dtype].itemsize * (m * k + n * k + m * n))) + 1))
    n_runs = max(3, min(200, int(4e-3 / (2 * m * n * k / (TFLOPS[dtype] * 1e12)))))
    shapes = {"a": (m, k), "b": (k, n) if right_turned else (n, k), "c": (n,), "y": (m, n)}
    sets = [{name: torch.randn(shape, device="cuda").to(DTYPES[dtype])
             for name, shape in shapes.items()} for _ in range(n_sets)]
    text = source(dtype, (), m, n, k, False, right_turned, "bias, relu")
    program = Program(runtime, compile_to(fusec, text, "sm_90a", folder), dtype)
    ours = [program.prepare(tensors) for tensors in sets]

    def theirs(i, activate):
        s = sets[i % n_sets]
        b = s["b"] if right_turned else s["b"].t()
        if activate:
            return torch._addmm_activation(s["c"], s["a"], b)
        return torch.mm(s["a"], b, out=s["y"])

    graphs = {"torch.mm": captured(lambda i, _: theirs(i, False), n_runs),
              "cuBLASLt bias, relu": captured(lambda i, _: theirs(i, True), n_runs),
              "ours": captured(lambda i, stream: program.run(ours[i % n_sets], stream), n_runs)}
    times = {name: [] for name in graphs}
    for turn in range(10):
        for name in random.sample(list(graphs), len(graphs)):
            us = burst(graphs[name], n_runs)
            if turn:
                times[name].append(us)
    medians = {name: sorted(us)[len(us) // 2] for name, us in times.items()}
    print(f"{m} x {n} x {k}, right {'[K, N]' if right_turned else '[N, K]'}: "
          + ", ".join(f"{name} {us:.2f} us" for name, us in medians.items())
          + f", ratio {medians['torch.mm'] / medians['ours']:.3f}", flush=True)


def time_all(runtime, fusec, folder, dtype):
    for size in (512, 1024, 1536, 2048, 3072, 4096, 5120, 8192):
        for right_turned in (False, True):
            time_shape(runtime, fusec, folder, dtype, size, size, size, right_turned)
    for m, n, k in ((128, 8192, 8192), (4096, 4096, 512), (4096, 4096, 4040)):
        time_shape(runtime, fusec, folder, dtype, m, n, k, False)


def main():
    fusec, runtime, good = sys.argv[1], Runtime(sys.argv[2]), True
    with tempfile.TemporaryDirectory() as folder:
        for what in sys.argv[3:] or ["check", "time"]:
            word, *numbers = what.split(":")
            if word == "time":
                time_all(runtime, fusec, folder, *(numbers or ["bf16"]))
            elif word == "check":
                n_cases, seed = [int(x) for x in numbers] + [200, 1][len(numbers):]
                good = check(runtime, fusec, folder, n_cases, seed) and good
            else:
                sys.exit(f"gemm_torch.py: neither check nor time: {what}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
