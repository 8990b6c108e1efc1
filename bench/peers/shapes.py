"""Random shapes that are on no list: relu(x @ w + b) in bf16 against cuBLASLt's fused epilogue, M,
N and K from 1 to 8192, in every second shape all odd. The geometric mean and the worst count.
"""

import concurrent.futures
import json
import math
import os
import random
import sys
import time

import torch

import contenders
import fusert
import measure
import timing
import workloads

MAX_EXTENT = 8192
TOLERANCE = 1e-2
N_SETS = 4  # of buffers, at distances within large pools


def draw(n, seed):
    rng = random.Random(seed)
    for i in range(n):
        shape = tuple(rng.randint(1, MAX_EXTENT) for _ in range(3))
        yield tuple(extent | 1 if extent < MAX_EXTENT else extent - 1 for extent in shape) \
            if i % 2 else shape


SYMBOLIC = ("dim M in 1..8192\ndim N in 1..8192\ndim K in 1..8192\n"
            "graph gemm(x: bf16[M, K], w: bf16[K, N], b: bf16[N]) -> (y: bf16[M, N]) {\n"
            "  y = relu(x @ w + b)\n}\n")


class Pools:
    """Random numbers once; every shape's tensors are views of them."""

    def __init__(self, seed):
        generator = torch.Generator("cuda").manual_seed(seed)
        n = MAX_EXTENT * MAX_EXTENT

        def numbers(size, scale=1.0):
            made = torch.randn(size, generator=generator, device="cuda") * scale
            return made.bfloat16()
        self.x = [numbers(n) for _ in range(N_SETS)]
        self.w = [numbers(n, 1 / 64) for _ in range(N_SETS)]
        self.b = numbers(MAX_EXTENT)
        self.y = [torch.empty(n, device="cuda", dtype=torch.bfloat16) for _ in range(N_SETS)]

    def views(self, i, m, n, k):
        return (self.x[i][:m * k].view(m, k), self.w[i][:k * n].view(k, n), self.b[:n],
                self.y[i][:m * n].view(m, n))


class Given(contenders.Contender):
    """Calls made elsewhere."""

    def __init__(self, name, calls):
        super().__init__(name, "")
        self.calls = calls


def library_calls(pools, m, n, k):
    calls = []
    for i in range(N_SETS):
        x, w, b, _ = pools.views(i, m, n, k)
        calls.append(lambda x=x, w=w, b=b: torch._addmm_activation(b, x, w))
    return calls


def own_calls(execs, stream):
    return [lambda exec_=exec_: exec_.run(stream.cuda_stream) for exec_ in execs]


def bind(program, pools, m, n, k):
    execs = []
    for i in range(N_SETS):
        x, w, b, y = pools.views(i, m, n, k)
        execs.append(program.exec({"x": (x.data_ptr(), "bf16", (m, k)),
                                   "w": (w.data_ptr(), "bf16", (k, n)),
                                   "b": (b.data_ptr(), "bf16", (n,)),
                                   "y": (y.data_ptr(), "bf16", (m, n))}))
    return execs


def check(exec_, pools, stream, shape):
    x, w, b, y = pools.views(0, *shape)
    guard = pools.y[0][y.numel():y.numel() + 4096]
    y.fill_(float("nan"))
    guard.fill_(-7.0)
    torch.cuda.synchronize()
    exec_.run(stream.cuda_stream)
    torch.cuda.synchronize()
    # In f32, which is a thousand times finer than the bound and quick enough for 200 of them.
    expected = torch.relu(x.float() @ w.float() + b.float())
    error = contenders.error_of([y], [expected.double()])
    if not error <= TOLERANCE:
        raise fusert.Error(f"the result is wrong: relative error {error:.3g}")
    if not bool((guard == -7.0).all()):
        raise fusert.Error("something was written behind the result")
    return error


def measure_one(program, pools, shape, stream, n_rounds):
    execs = bind(program, pools, *shape)
    try:
        error = check(execs[0], pools, stream, shape)
        timers = {"fusec": timing.Graph(Given("fusec", own_calls(execs, stream)), stream),
                  "lt": timing.Graph(Given("lt", library_calls(pools, *shape)), stream)}
        times = timing.alternate(timers, stream, n_rounds)
        ours, theirs = (timing.spread(times[name])[0] for name in ("fusec", "lt"))
        m, n, k = shape
        return {"shape": shape, "us": ours, "lt_us": theirs, "ratio": theirs / ours,
                "error": error, "tflop_per_s": 2e-6 * m * n * k / ours}
    finally:
        for exec_ in execs:
            exec_.close()


def source(m, n, k):
    return workloads.gemm(m, n, k)("kn").source


def compile_all(libraries, target, shapes, symbolic):
    """An artifact for each shape, compiled side by side: no times are taken here."""
    if symbolic:
        return [libraries.compile(SYMBOLIC, target, "gemm.g")] * len(shapes)
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda shape: libraries.compile(source(*shape), target, "gemm.g"),
                             shapes))


def summary(result):
    ratios = [row["ratio"] for row in result["rows"]]
    if not ratios:
        return "no shape was measured"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    worst = min(result["rows"], key=lambda row: row["ratio"])
    result["geometric_mean"], result["worst"] = mean, worst
    ordered = sorted(ratios)
    kind = "one symbolic artifact" if result["symbolic"] else "an artifact for each"
    m, n, k = worst["shape"]
    return (f"{len(ratios)} of {result['n']} random shapes, {kind}: cuBLASLt's time over ours,"
            f" geometric mean {mean:.3f} (wanted 0.95), median {ordered[len(ordered) // 2]:.3f},"
            f" worst {worst['ratio']:.3f} (wanted 0.6; M = {m}, N = {n}, K = {k}),"
            f" best {ordered[-1]:.3f}")


def run(libraries, options):
    begin = time.monotonic()
    target = options.target or libraries.target_for(torch.cuda.get_device_capability())
    torch.backends.cuda.matmul.allow_tf32 = False
    options.rounds = min(options.rounds, 5)
    shapes = list(draw(options.shapes, options.seed))
    result = measure.describe(libraries, target, options)
    result.update(n=len(shapes), symbolic=options.symbolic, rows=[], failures={}, skipped=0)
    artifacts = compile_all(libraries, target, shapes, options.symbolic)
    timing.warm_up(0.3)
    pools, stream = Pools(options.seed), torch.cuda.Stream()
    program = None
    for shape, artifact in zip(shapes, artifacts):
        if time.monotonic() + 1 > options.deadline:
            result["skipped"] += 1
            continue
        try:
            if not program or not options.symbolic:
                program = libraries.program(artifact)
            result["rows"].append(measure_one(program, pools, shape, stream, options.rounds))
        except Exception as error:
            result["failures"][str(shape)] = f"{type(error).__name__}: {error}"[:300]
            measure.say(f"{shape}: {error}")
            if measure.device_is_lost():
                break
        finally:
            if program and not options.symbolic:
                program.close()
                program = None
    words = summary(result)
    result["seconds"] = time.monotonic() - begin
    with open(os.path.join(options.out, "shapes.json"), "w") as file:
        json.dump(result, file, indent=1)
    print(f"{result['card']}; {result['date']}\n{words}; {result['seconds']:.0f} s")
    for shape, why in result["failures"].items():
        print(f"FAILED {shape}: {why}")
    n_missing = len(shapes) - len(result["rows"]) - len(result["failures"])
    if n_missing:
        print(f"MISSING {n_missing} shapes", file=sys.stdout)
    return 1 if result["failures"] else 3 if n_missing else 0
