"""Device times: contenders in alternation, each as a replayed CUDA graph over rotating buffers, and
the ceilings that the card shows in the same run.
"""

import gc
import random
import statistics
import time

import torch

REPLAY_MS = 1.5  # a graph is made as long as this by repeating its calls
LOOP_MS = 15.0  # what is timed by the clock takes longer, since its end is seen late
MAX_CALLS = 1024  # in a graph
SETTLE_S, MEASURE_S, MAX_ROUNDS = 0.1, 0.5, 64  # of all contenders together


def capture(calls, n_passes, stream):
    """A graph of n passes over the calls. All results are kept, so that every call has memory of
    its own for them, as fusec has."""
    graph = torch.cuda.CUDAGraph()
    kept = []
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        for i in range(n_passes):
            results = [call() for call in calls]
            if i == 0:
                kept = results
    return graph, kept


class Graph:
    """A captured contender."""

    def __init__(self, contender, stream):
        calls = contender.calls
        with torch.cuda.stream(stream):  # warm: allocations, handles, autotuning
            for _ in range(2):
                for call in calls[:4]:
                    call()
        stream.synchronize()
        self.n_calls = len(calls)
        self.graph, self.kept = capture(calls, 1, stream)
        estimate = self.replay_ms(stream, 3)
        n_passes = max(1, min(int(REPLAY_MS / estimate), MAX_CALLS // len(calls)))
        if n_passes > 1:
            self.graph, self.kept = capture(calls, n_passes, stream)
            self.n_calls = n_passes * len(calls)
            self.replay_ms(stream, 2)

    def replay_ms(self, stream, n):
        """The least of n replays."""
        return min(1e3 * self.seconds(stream) * self.n_calls for _ in range(n))

    def seconds(self, stream):
        """Seconds of one call, in one replay."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            begin.record()
            self.graph.replay()
            end.record()
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end) / self.n_calls


class Loop:
    """A contender that is no part of a graph, by the clock."""

    def __init__(self, contender):
        self.contender = contender
        contender.timed(2)
        seconds = contender.timed(4) * len(contender.batched)
        self.n_passes = max(1, min(int(1e-3 * LOOP_MS / seconds), 256))

    def seconds(self, stream):
        return self.contender.timed(self.n_passes)


def prepare(contender, stream):
    return Graph(contender, stream) if contender.is_captured else Loop(contender)


def alternate(timers, stream, n_rounds, settle_s=SETTLE_S, measure_s=MEASURE_S):
    """Times for each timer, in seconds: at least n rounds, and as many more as fit into a while.
    Each round takes the timers in a random order, so that nobody always follows the same load;
    rounds before the clocks have settled do not count, one at least."""
    times = {key: [] for key in timers}
    rng, begin, settled = random.Random(1), time.perf_counter(), False
    while timers:
        turn = rng.sample(list(timers), len(timers))
        seconds = {key: timers[key].seconds(stream) for key in turn}
        elapsed = time.perf_counter() - begin
        if settled:
            for key, value in seconds.items():
                times[key].append(value)
        settled = settled or elapsed > settle_s
        n = len(next(iter(times.values())))
        if n >= n_rounds and (elapsed > settle_s + measure_s or n >= MAX_ROUNDS):
            break
    return times


def spread(times):
    """The median of some times in seconds, and half the distance of the quartiles, both in us."""
    if len(times) < 2:
        return 1e6 * times[0], 0.0
    quartiles = statistics.quantiles(times, n=4)
    return 1e6 * statistics.median(times), 5e5 * (quartiles[2] - quartiles[0])


def release():
    gc.collect()
    torch.cuda.empty_cache()


# ---- ceilings ----

def median_seconds(body, n=9):
    times = []
    for i in range(n + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        body()
        end.record()
        end.synchronize()
        times.append(1e-3 * begin.elapsed_time(end))
    return statistics.median(times[2:])


def streams():
    """GB/s of a copy, an addition and a sum over 1 GiB tensors, bytes read and written."""
    n = 1 << 28
    a, b = (torch.randn(n, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    rates = {"copy (1 read, 1 write)": 2 * 4 * n / median_seconds(lambda: out.copy_(a)),
             "add (2 reads, 1 write)": 3 * 4 * n / median_seconds(
                 lambda: torch.add(a, b, out=out)),
             "sum (1 read)": 4 * n / median_seconds(lambda: a.sum())}
    return {name: rate / 1e9 for name, rate in rates.items()}


def product_rate(n, dtype, budget_s=0.5):
    """TFLOP/s of torch.mm on random squares, both layouts of the right operand tried."""
    x, w = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
    begin = time.perf_counter()
    seconds = median_seconds(lambda: torch.mm(x, w))
    if time.perf_counter() - begin < budget_s:
        seconds = min(seconds, median_seconds(lambda: torch.mm(x, w.t())))
    return 2 * n ** 3 / seconds / 1e12


def ceilings():
    """What this card reaches now: GB/s of streams, TFLOP/s of products of large squares."""
    found = {"streams": streams(), "products": {}}
    for name, n, dtype in (("bf16", 8192, torch.bfloat16), ("tf32", 8192, torch.float32),
                           ("f32", 4096, torch.float32)):
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        found["products"][name] = product_rate(n, dtype)
    release()
    return found


def warm_up(seconds):
    """Brings the clocks to what they are under load."""
    x = torch.randn(4096, 4096, device="cuda").bfloat16()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(20):
            torch.mm(x, x)
        torch.cuda.synchronize()
