"""Products on CPU threads: fusec beside PyTorch (oneDNN), and one build of fusec beside another.

    python3 bench/products_cpu.py LIB[,LIB...] [--threads 1,2] [--filter REGEX] [--rounds 9]

LIB is a folder with libfusec.so and libfusert.so. All contenders compute the same rows from the same
numbers in one process, in turns. The least time of each counts; with one thread it is the
processor's time. The ratio is the time of the better PyTorch over that of the first LIB. Weights are
params, which an init step packs; PyTorch gets them as [K, N] and as [N, K]. Exit status 1 where
results disagree. TARGET of the environment is what fusec compiles for (cpu-v4). Products of bf16
are compiled with fast numerics, in which `cpu-amx` has tile registers for them.
"""

import argparse
import ctypes as c
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import fusert  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402


TORCH_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i8": torch.int8, "i32": torch.int32}


def product(m, k, n, dtype="f32"):
    return {"name": f"relu(x @ w + b) {m}x{k}x{n}" + ("" if dtype == "f32" else f" {dtype}"),
            "x": (m, k), "y": (m, n), "params": [(k, n), (n,)], "dtype": dtype,
            "body": "  y = relu(x @ w0 + w1)\n",
            "torch": lambda x, w, b: torch.relu_(torch.addmm(b, x, w)),
            "linear": lambda x, w, b: torch.relu_(F.linear(x, w, b))}


def rows(m, k, n):
    return {"name": f"x @ w {m}x{k}x{n}", "x": (m, k), "y": (m, n), "params": [(k, n)],
            "body": "  y = x @ w0\n", "torch": lambda x, w: x @ w, "linear": F.linear}


def bytes_product(m, k, n):
    return {"name": f"x @ w {m}x{k}x{n} i8", "x": (m, k), "y": (m, n), "params": [(k, n)],
            "dtype": "i8", "result": "i32", "body": "  y = matmul(x, w0, out=i32)\n",
            "torch": torch._int_mm, "linear": lambda x, w: torch._int_mm(x, w.t())}


def feed_forward(m, d, h):
    return {"name": f"feed-forward {m}x{d}x{h}", "x": (m, d), "y": (m, d),
            "params": [(d, h), (h,), (h, d), (d,)],
            "body": "  y = relu(x @ w0 + w1) @ w2 + w3\n",
            "torch": lambda x, a, b, v, d: torch.addmm(d, torch.relu_(torch.addmm(b, x, a)), v),
            "linear": lambda x, a, b, v, d: F.linear(torch.relu_(F.linear(x, a, b)), v, d)}


def chain(n, steps):
    body = "  v0 = x\n" + "".join(
        f"  fuse never {{\n    v{i + 1} = v{i} * 1.5 + 1.0\n  }}\n" for i in range(steps))
    return {"name": f"chain of {steps} kernels of {n}", "x": (n,), "y": (n,), "params": [],
            "body": body + f"  y = v{steps}\n", "torch": lambda x: chain_torch(x, steps),
            "linear": None}


def chain_torch(x, steps):
    for _ in range(steps):
        x = x * 1.5 + 1.0
    return x


CASES = [product(1024, 1024, 1024), product(256, 4096, 4096), product(2048, 2048, 2048),
         product(333, 777, 1111), product(96, 512, 512), product(64, 64, 64),
         rows(1, 4096, 4096), rows(16, 4096, 4096), rows(1, 512, 512),
         product(1024, 1024, 1024, "bf16"), product(256, 4096, 4096, "bf16"),
         product(2048, 2048, 2048, "bf16"), product(333, 777, 1111, "bf16"),
         product(64, 4096, 4096, "bf16"), bytes_product(1024, 1024, 1024),
         bytes_product(512, 301, 777), bytes_product(256, 4096, 4096),
         feed_forward(64, 1024, 4096), chain(64, 1), chain(64, 8), chain(65536, 8)]


def dtype_of(case):
    return case.get("dtype", "f32")


def result_of(case):
    return case.get("result", dtype_of(case))


def shape(dtype, extents):
    return f"{dtype}[" + ", ".join(map(str, extents)) + "]"


def source(case):
    dtype = dtype_of(case)
    params = "".join(f'  param w{i}: {shape(dtype, p)} = "w{i}"\n'
                     for i, p in enumerate(case["params"]))
    return (f"graph g(x: {shape(dtype, case['x'])}) -> (y: {shape(result_of(case), case['y'])}) {{\n{params}"
            f"{case['body']}}}\n")


class Ours:
    """A program on so many threads."""

    def __init__(self, libraries, case, tensors, n_threads):
        self.lib = libraries
        target = os.environ.get("TARGET", "cpu-v4")
        numerics = "fast" if dtype_of(case) == "bf16" else "strict"
        artifact = libraries.compile(source(case), target, "g.g", numerics)
        self.program = fusert.Program(libraries, artifact, n_threads=n_threads)
        for i, w in enumerate(tensors[1:]):
            libraries.call("frt_program_set_param", self.program.handle, f"w{i}".encode(),
                           w.data_ptr(), w.numel() * w.element_size())
        self.exec, self.y = c.c_void_p(), torch.empty(case["y"], dtype=TORCH_DTYPES[result_of(case)])
        libraries.call("frt_exec_create", self.program.handle, c.byref(self.exec))
        for name, tensor, dtype in (("x", tensors[0], dtype_of(case)), ("y", self.y, result_of(case))):
            bound = fusert.frt_tensor(data=tensor.data_ptr(), dtype=fusert.DTYPES[dtype],
                                      rank=tensor.dim())
            for i, extent in enumerate(tensor.shape):
                bound.dims[i] = extent
            libraries.call("frt_bind", self.exec, name.encode(), c.byref(bound))

    def run(self):
        self.lib.frt.frt_run(self.exec, None, None)

    def runs(self, n):
        """The least of n runs, timed by the library: a call from Python takes a microsecond."""
        ms = (c.c_float * n)()
        self.lib.call("frt_time_runs", self.exec, None, n, ms)
        return min(ms) * 1e3

    def close(self):
        self.lib.frt.frt_exec_free(self.exec)
        self.program.close()


class Theirs:
    def __init__(self, function, tensors):
        self.function, self.tensors = function, tensors

    def run(self):
        self.y = self.function(*self.tensors)

    def runs(self, n):
        least = float("inf")
        for _ in range(n):
            begin = time.perf_counter()
            self.function(*self.tensors)
            least = min(least, time.perf_counter() - begin)
        return least * 1e6

    def close(self):
        pass


def draw(case):
    if dtype_of(case) == "i8":
        return [torch.randint(-128, 128, s, dtype=torch.int8) for s in [case["x"]] + case["params"]]
    tensors = [torch.randn(case["x"])] + [torch.randn(p) / p[0]**0.5 for p in case["params"]]
    return [t.to(TORCH_DTYPES[dtype_of(case)]) for t in tensors]


def contenders(case, libraries, n_threads):
    torch.manual_seed(1)
    tensors = draw(case)
    named = [(f"fusec{i or ''}", Ours(lib, case, tensors, n_threads))
             for i, lib in enumerate(libraries)]
    named.append(("torch", Theirs(case["torch"], tensors)))
    if case["linear"]:
        turned = [tensors[0]] + [t.t().contiguous() if t.dim() > 1 else t for t in tensors[1:]]
        named.append(("torch nk", Theirs(case["linear"], turned)))
    return named


def time_runs(one, n, n_threads):
    """Microseconds of a run. One thread's is its processor's time, which other work on the machine
    does not take; else it is the least of n."""
    begin = time.thread_time()
    least = one.runs(n)
    return (time.thread_time() - begin) / n * 1e6 if n_threads == 1 and least > 100 else least


def agree(named):
    for _, one in named:
        one.run()
    results = [one.y.double() for _, one in named]
    bound = 2e-2 if named[0][1].y.dtype == torch.bfloat16 else 1e-3
    return all(torch.allclose(results[-1], y, rtol=bound, atol=bound) for y in results)


def measure(case, libraries, n_threads, rounds):
    """Microseconds of each contender."""
    torch.set_num_threads(n_threads)
    named = contenders(case, libraries, n_threads)
    good = agree(named)
    least = {name: float("inf") for name, _ in named}
    for _ in range(rounds):
        for name, one in named:
            time.sleep(0.002)  # spinning threads of the one before go to sleep
            n = max(1, min(200, int(20e3 / max(1.0, time_runs(one, 1, n_threads)))))
            least[name] = min(least[name], time_runs(one, n, n_threads))
    for _, one in named:
        one.close()
    return least, good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("libraries")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    libraries = [fusert.Libraries(folder) for folder in args.libraries.split(",")]
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} CPUs; microseconds")
    status = 0
    for n_threads in map(int, args.threads.split(",")):
        for case in CASES:
            if not re.search(args.filter, case["name"]):
                continue
            least, good = measure(case, libraries, n_threads, args.rounds)
            best = min(us for name, us in least.items() if name.startswith("torch"))
            print(f"{n_threads} {case['name']:34}",
                  "  ".join(f"{name} {us:9.1f}" for name, us in least.items()),
                  " best torch / fusec %.2f" % (best / least["fusec"]),
                  "" if good else " DISAGREE", flush=True)
            status |= not good
    return status


if __name__ == "__main__":
    sys.exit(main())
