"""Draws convolutions, as sources of fusec and as calls of PyTorch.

    python3 bench/convolutions.py FOLDER [N] [SEED]     writes FOLDER/conv-NUMBER.g
    python3 bench/convolutions.py --beside=FUSEC[,FUSEC..] [N] [SEED] [THREADS] [PLACES]
        times them beside PyTorch's; PLACES, as 3,14: only these of the list, counted from 0

Log-uniform: channels 1 to 512, sizes 7 to 224, kernels 1 to 11, batches 1 to 16; strides 1 to 3,
dilation 1 or 2, groups 1 or all channels, transposed or not, channels first or last, 1 MFLOP to
10 GFLOP.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time

LEAST_FLOPS, MOST_FLOPS = 1e6, 1e10


def log_uniform(rng, low, high):
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


class Convolution:
    """One convolution. `channels_last` is the layout of the image: [B, H, W, C] or [B, C, H, W]."""

    def __init__(self, rng):
        self.batch, self.size = log_uniform(rng, 1, 16), log_uniform(rng, 7, 224)
        self.channels, self.columns = log_uniform(rng, 1, 512), log_uniform(rng, 1, 512)
        self.kernel, self.stride = log_uniform(rng, 1, 11), rng.randint(1, 3)
        self.dilation = rng.randint(1, 2) if self.kernel > 1 else 1
        self.is_transposed, self.channels_last = rng.random() < 0.2, rng.random() < 0.5
        self.groups = 1
        if rng.random() < 0.25:
            self.groups = self.columns = self.channels
        self.padding = rng.choice([0, self.dilation * (self.kernel - 1) // 2])
        self.reach = self.dilation * (self.kernel - 1) + 1
        self.out = (self.size + 2 * self.padding - self.reach) // self.stride + 1
        if self.is_transposed:
            self.channels_last = False
            self.out = (self.size - 1) * self.stride - 2 * self.padding + self.reach

    def flops(self):
        side = self.size if self.is_transposed else self.out
        return (2.0 * self.batch * side**2 * self.kernel**2 * self.channels
                * self.columns / self.groups)

    def is_good(self):
        return self.out > 0 and LEAST_FLOPS <= self.flops() <= MOST_FLOPS

    def name(self):
        return (f"{'transposed ' if self.is_transposed else ''}{self.kernel}x{self.kernel}"
                f" {self.channels}>{self.columns} of {self.batch}x{self.size}^2"
                f" /{self.stride} *{self.dilation} g{self.groups} p{self.padding}"
                f" {'NHWC' if self.channels_last else 'NCHW'}")

    def shapes(self):
        """Of the image, the weights and the result, in the layout that was drawn."""
        b, s, o, c, n, k = (self.batch, self.size, self.out, self.channels, self.columns,
                            self.kernel)
        per = c // self.groups
        x, y = ((b, s, s, c), (b, o, o, n)) if self.channels_last else ((b, c, s, s), (b, n, o, o))
        w = (k, k, per, n) if self.channels_last else (n, per, k, k)
        return x, (c, n // self.groups, k, k) if self.is_transposed else w, y

    def call(self, x, w, bias):
        function = "conv2d_nhwc" if self.channels_last else "conv2d"
        if self.is_transposed:
            function = "conv_transpose2d"
        return (f"{function}({x}, {w}, {bias}, stride={self.stride}, padding={self.padding},"
                f" dilation={self.dilation}, groups={self.groups})")

    def source(self):
        x, w, y = map(list, self.shapes())
        return (f"# {self.name()}\ngraph conv(x: f32{x}) -> (y: f32{y}) {{\n"
                f"  param w: f32{w}\n  param bias: f32[{self.columns}]\n"
                f"  y = relu({self.call('x', 'w', 'bias')})\n}}\n")

    def torch_call(self, torch, memory_format):
        """A function that computes it, with the image in this layout in memory."""
        functional, shape = torch.nn.functional, (self.batch, self.channels, self.size, self.size)
        per = self.channels // self.groups
        kernel = (self.kernel, self.kernel)
        w = torch.randn((self.channels, self.columns // self.groups) + kernel
                        if self.is_transposed else (self.columns, per) + kernel)
        x, w = (t.contiguous(memory_format=memory_format) for t in (torch.randn(shape), w))
        bias, convolve = torch.randn(self.columns), functional.conv2d
        if self.is_transposed:
            convolve = functional.conv_transpose2d
        return lambda: torch.relu_(convolve(x, w, bias, stride=self.stride, padding=self.padding,
                                            dilation=self.dilation, groups=self.groups))


RUNS, MOST_SECONDS = 12, 0.4


def least_us(function):
    """Of several calls, after one that is not counted, unless that one takes long."""
    begin = time.perf_counter()
    function()
    first = time.perf_counter() - begin
    if first > MOST_SECONDS:
        return 1e6 * first
    least, begin = math.inf, time.perf_counter()
    for _ in range(RUNS):
        now = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - now)
        if now - begin > MOST_SECONDS:
            break
    return 1e6 * least


def fusec_us(fusec, drawn, threads):
    with tempfile.NamedTemporaryFile("w", suffix=".g") as file:
        file.write(drawn.source())
        file.flush()
        out = subprocess.run([fusec, "bench", file.name, "--device=cpu", "--target=cpu-native",
                              f"--threads={threads}", f"--runs={RUNS}", "--json"],
                             capture_output=True, text=True, timeout=600)
    if out.returncode:
        sys.exit(f"{drawn.name()}: {out.stderr}")
    return json.loads(out.stdout)["min_us"]


def summary(ratios):
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (f"geometric mean {mean:.2f} of {len(ratios)}, worst {min(ratios):.2f},"
            f" {sum(r >= 0.6 for r in ratios)} at least 0.6")


def beside(compilers, drawn, threads):
    """PyTorch's best layout in memory over that of each compiler, channels first or last as drawn.
    `drawn` has the places in the list too."""
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    compilers, ratios = compilers.split(","), []
    for place, one in drawn:
        formats = (torch.contiguous_format, torch.channels_last)
        calls = [one.torch_call(torch, memory_format) for memory_format in formats]
        theirs = [least_us(call) for call in calls]
        ours = [fusec_us(fusec, one, threads) for fusec in compilers]
        if min(theirs) < 1e6 * MOST_SECONDS:
            theirs += [least_us(call) for call in calls]
        ratios.append([min(theirs) / us for us in ours])
        print(f"{min(theirs):10.1f}", *(f"{us:10.1f}" for us in ours),
              *(f"{ratio:6.2f}" for ratio in ratios[-1]), f" {place:2} {one.name()}", flush=True)
    print(f"{threads} threads, PyTorch {torch.__version__}:")
    for i, fusec in enumerate(compilers):
        print(f"{fusec}: {summary([ratio[i] for ratio in ratios])}")


def draw(n, seed):
    rng, drawn = random.Random(seed), []
    while len(drawn) < n:
        convolution = Convolution(rng)
        if convolution.is_good():
            drawn.append(convolution)
    return drawn


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    n, seed, threads = (int(sys.argv[i]) if len(sys.argv) > i else default
                        for i, default in ((2, 100), (3, 1), (4, 1)))
    if folder.startswith("--beside="):
        drawn = list(enumerate(draw(n, seed)))
        if len(sys.argv) > 5:
            drawn = [drawn[int(place)] for place in sys.argv[5].split(",")]
        beside(folder.removeprefix("--beside="), drawn, threads)
        return
    os.makedirs(folder, exist_ok=True)
    for number, convolution in enumerate(draw(n, seed)):
        with open(os.path.join(folder, f"conv-{number}.g"), "w") as file:
            file.write(convolution.source())


if __name__ == "__main__":
    main()
