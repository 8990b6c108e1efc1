"""Random shapes that are on no list: relu(x @ w + b) in bf16 against cuBLASLt's fused epilogue, M,
N and K from 1 to 8192, in every second shape all odd. The geometric mean and the worst count.
"""

import concurrent.futures
import json
import math
import os
import random
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
MOST_ROUNDS = 7  # of timing
WORST = 8  # of shapes that are told


def draw(n, seed, multiple):
    """Shapes of such multiples; of 1: in every second shape all odd."""
    rng = random.Random(seed)
    for i in range(n):
        shape = tuple(rng.randint(1, MAX_EXTENT // multiple) * multiple for _ in range(3))
        yield tuple(extent | 1 if extent < MAX_EXTENT else extent - 1 for extent in shape) \
            if multiple == 1 and i % 2 else shape


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


def tensors(pools, i, m, n, k):
    x, w, b, y = pools.views(i, m, n, k)
    return {"x": (x.data_ptr(), "bf16", (m, k)), "w": (w.data_ptr(), "bf16", (k, n)),
            "b": (b.data_ptr(), "bf16", (n,)), "y": (y.data_ptr(), "bf16", (m, n))}


class Ours:
    """An artifact with an exec for each set of buffers, which are bound to one shape after the
    other."""

    def __init__(self, libraries, artifact):
        self.program, self.execs = libraries.program(artifact), []
        self.loaded_ms = 0.0

    def bind(self, pools, shape):
        """Returns the microseconds that preparing an exec took, without what was loaded for it."""
        begin = time.perf_counter()
        for i in range(N_SETS):
            bound = tensors(pools, i, *shape)
            if len(self.execs) <= i:
                self.execs.append(self.program.exec(bound))
            else:
                self.execs[i].bind(bound)
        us = 1e6 * (time.perf_counter() - begin)
        before, self.loaded_ms = self.loaded_ms, self.program.load_ms()
        return (us - 1e3 * (self.loaded_ms - before)) / N_SETS

    def variant(self):
        """Of the product, the last step."""
        return self.execs[0].variant(self.program.graph.n_steps - 1)

    def close(self, result):
        result["load_ms"] += self.loaded_ms
        for exec_ in self.execs:
            exec_.close()
        self.program.close()


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


def measure_one(ours, pools, shape, stream, n_rounds):
    """A row. Everything before was work for the device, so that its clocks have settled."""
    prepare_us = ours.bind(pools, shape)
    error = check(ours.execs[0], pools, stream, shape)
    timers = {"fusec": timing.Graph(Given("fusec", own_calls(ours.execs, stream)), stream),
              "lt": timing.Graph(Given("lt", library_calls(pools, *shape)), stream)}
    times = timing.alternate(timers, stream, n_rounds, settle_s=0, measure_s=0)
    us, lt_us = (timing.spread(times[name])[0] for name in ("fusec", "lt"))
    m, n, k = shape
    return {"shape": shape, "us": us, "lt_us": lt_us, "ratio": lt_us / us, "error": error,
            "tflop_per_s": 2e-6 * m * n * k / us, "variant": ours.variant(),
            "prepare_us": prepare_us}


def source(m, n, k):
    return workloads.gemm(m, n, k)("kn").source


def compile_all(libraries, target, shapes, symbolic):
    """An artifact for each shape, compiled side by side: no times are taken here."""
    if symbolic:
        return [libraries.compile(SYMBOLIC, target, "gemm.g")] * len(shapes)
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda shape: libraries.compile(source(*shape), target, "gemm.g"),
                             shapes))


def class_of(shape):
    """How rows lie, which is what libraries' speed hangs on."""
    _, n, k = shape
    return "rows of 16 bytes" if n % 8 == 0 and k % 8 == 0 else \
        "all odd" if all(extent % 2 for extent in shape) else "between"


def mean_of(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(result):
    """Lines: ratios by class and by variant, and the worst shapes."""
    groups = {}
    for row in result["rows"]:
        groups.setdefault(class_of(row["shape"]), []).append(row["ratio"])
        if result["symbolic"]:
            groups.setdefault(f"variant {row['variant']}", []).append(row["ratio"])
    for name in sorted(groups):
        ratios = groups[name]
        yield f"{name:18} {len(ratios):4}  mean {mean_of(ratios):.3f}  worst {min(ratios):.3f}"
    for row in sorted(result["rows"], key=lambda row: row["ratio"])[:WORST]:
        m, n, k = row["shape"]
        yield (f"{m:5} x {n:5} x {k:5}  ratio {row['ratio']:.3f}  {row['us']:8.2f} us, cuBLASLt"
               f" {row['lt_us']:8.2f} us, variant {row['variant']}")


def summary(result):
    ratios = [row["ratio"] for row in result["rows"]]
    if not ratios:
        return "no shape was measured"
    worst = min(result["rows"], key=lambda row: row["ratio"])
    result["geometric_mean"], result["worst"] = mean_of(ratios), worst
    ordered = sorted(ratios)
    kind = "one symbolic artifact" if result["symbolic"] else "an artifact for each"
    m, n, k = worst["shape"]
    return (f"{len(ratios)} of {result['n']} random shapes, {kind}: cuBLASLt's time over ours,"
            f" geometric mean {mean_of(ratios):.3f} (wanted 0.95),"
            f" median {ordered[len(ordered) // 2]:.3f},"
            f" worst {worst['ratio']:.3f} (wanted 0.6; M = {m}, N = {n}, K = {k}),"
            f" best {ordered[-1]:.3f}")


def spent(result):
    """What the seconds went into, so that a run that takes longer says why."""
    prepare = sorted(row["prepare_us"] for row in result["rows"]) or [0.0]
    return (f"{result['seconds']:.0f} s: {result['load_ms']:.0f} ms loading kernels, preparing"
            f" {prepare[len(prepare) // 2]:.0f} us (median), {result['measure_s']:.1f} s measuring")


def measure_all(libraries, options, shapes, result):
    """Fills result's rows and failures, as far as there is time."""
    artifacts = compile_all(libraries, result["target"], shapes, options.symbolic)
    timing.warm_up(0.3)
    pools, stream = Pools(options.seed), torch.cuda.Stream()
    ours, begin = None, time.monotonic()
    for shape, artifact in zip(shapes, artifacts):
        if time.monotonic() + 1 > options.deadline:
            break
        try:
            ours = ours or Ours(libraries, artifact)
            row = measure_one(ours, pools, shape, stream, min(options.rounds, MOST_ROUNDS))
            result["rows"].append(row)
        except Exception as error:
            result["failures"][str(shape)] = f"{type(error).__name__}: {error}"[:300]
            measure.say(f"{shape}: {error}")
            if measure.device_is_lost():
                break
        finally:
            if ours and not options.symbolic:
                ours.close(result)
                ours = None
    if ours:
        ours.close(result)
    result["measure_s"] = time.monotonic() - begin


def run(libraries, options):
    begin = time.monotonic()
    target = options.target or libraries.target_for(torch.cuda.get_device_capability())
    torch.backends.cuda.matmul.allow_tf32 = False
    shapes = list(draw(options.shapes, options.seed, options.multiple))
    result = measure.describe(libraries, target, options)
    result.update(n=len(shapes), symbolic=options.symbolic, rows=[], failures={}, load_ms=0.0)
    measure_all(libraries, options, shapes, result)
    words = summary(result)
    result["seconds"] = time.monotonic() - begin
    with open(os.path.join(options.out, "shapes.json"), "w") as file:
        json.dump(result, file, indent=1)
    print(f"{result['card']}; {result['date']}\n{words}; {spent(result)}")
    for line in table(result):
        print(line)
    for shape, why in result["failures"].items():
        print(f"FAILED {shape}: {why}")
    n_missing = len(shapes) - len(result["rows"]) - len(result["failures"])
    if n_missing:
        print(f"MISSING {n_missing} shapes")
    return 1 if result["failures"] else 3 if n_missing else 0
