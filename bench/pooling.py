"""Draws pooling, as sources of fusec, and times them beside PyTorch's.

    python3 bench/pooling.py FUSEC[,FUSEC..] [N] [SEED] [THREADS]

Log-uniform: channels 1 to 512, sizes 7 to 224, windows 2 to 7, batches 1 to 16; strides 1 to the
window's, maxima and means, adaptive or not, channels first or last, 0.3 to 100 million elements read.
"""

import random
import sys

from convolutions import beside, log_uniform

LEAST_READS, MOST_READS = 3e5, 1e8


class Pooling:
    """One pooling. `channels_last` is the layout of the image: [B, H, W, C] or [B, C, H, W]."""

    def __init__(self, rng):
        self.batch, self.size = log_uniform(rng, 1, 16), log_uniform(rng, 7, 224)
        self.channels, self.window = log_uniform(rng, 1, 512), log_uniform(rng, 2, 7)
        self.stride = rng.randint(1, self.window)
        self.padding = rng.choice([0, self.window // 2])
        self.is_max, self.channels_last = rng.random() < 0.5, rng.random() < 0.5
        self.is_adaptive = rng.random() < 0.2
        self.out = (self.size + 2 * self.padding - self.window) // self.stride + 1
        if self.is_adaptive:
            self.channels_last, self.out = False, rng.choice([1, 2, 4, 7])

    def is_good(self):
        taps = self.size**2 if self.is_adaptive else (self.out * self.window)**2
        return self.out > 0 and LEAST_READS <= self.batch * self.channels * taps <= MOST_READS

    def name(self):
        what = f"{'adaptive ' if self.is_adaptive else ''}{'max' if self.is_max else 'mean'}"
        how = (f"to {self.out}^2" if self.is_adaptive else
               f"{self.window}x{self.window} /{self.stride} p{self.padding}")
        return (f"{what} {how} of {self.batch}x{self.channels}x{self.size}^2"
                f" {'NHWC' if self.channels_last else 'NCHW'}")

    def source(self):
        b, c, s, o = self.batch, self.channels, self.size, self.out
        x, y = (f"[{b}, {s}, {s}, {c}]", f"[{b}, {o}, {o}, {c}]") if self.channels_last else (
            f"[{b}, {c}, {s}, {s}]", f"[{b}, {c}, {o}, {o}]")
        kind = "max" if self.is_max else "avg"
        call = f"adaptive_{kind}_pool2d(x, {o})" if self.is_adaptive else (
            f"{kind}_pool2d{'_nhwc' if self.channels_last else ''}(x, {self.window},"
            f" stride={self.stride}, padding={self.padding})")
        return f"# {self.name()}\ngraph pool(x: f32{x}) -> (y: f32{y}) {{\n  y = {call}\n}}\n"

    def torch_call(self, torch, memory_format):
        """A function that computes it, with the image in this layout in memory."""
        functional = torch.nn.functional
        x = torch.randn((self.batch, self.channels, self.size, self.size))
        x = x.contiguous(memory_format=memory_format)
        if self.is_adaptive:
            pool = functional.adaptive_max_pool2d if self.is_max else functional.adaptive_avg_pool2d
            return lambda: pool(x, self.out)
        pool = functional.max_pool2d if self.is_max else functional.avg_pool2d
        return lambda: pool(x, self.window, stride=self.stride, padding=self.padding)


def draw(n, seed):
    rng, drawn = random.Random(seed), []
    while len(drawn) < n:
        pooling = Pooling(rng)
        if pooling.is_good():
            drawn.append(pooling)
    return drawn


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    n, seed, threads = (int(sys.argv[i]) if len(sys.argv) > i else default
                        for i, default in ((2, 100), (3, 1), (4, 1)))
    beside(sys.argv[1], draw(n, seed), threads)


if __name__ == "__main__":
    main()
