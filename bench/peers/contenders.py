"""The contenders of one case: fusec, and each peer in its own best form. A contender is made ready
(compiled, warmed) on the device buffers that all share, and says what its compilation took.
"""

import contextlib
import math
import time

import torch
import torch.nn.attention.flex_attention  # noqa: F401, workloads use it

import fusert

TORCH = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
         "bf16": torch.bfloat16, "i32": torch.int32}


class TorchOps:
    """torch for the functions of cases.py. `wide` is what softmax and the norms compute in."""
    torch = torch

    @staticmethod
    def mm(x, w, layout):
        return x @ (w if layout == "kn" else w.mT)

    batched = staticmethod(torch.matmul)
    relu, silu, rsqrt = torch.relu, torch.nn.functional.silu, torch.rsqrt
    softmax = staticmethod(torch.softmax)

    @staticmethod
    def gelu(x):
        return torch.nn.functional.gelu(x, approximate="tanh")

    @staticmethod
    def mean(x, axis):
        return x.mean(axis, keepdim=True)

    @staticmethod
    def wide(x):
        return x if x.dtype == torch.float64 else x.float()

    @staticmethod
    def like(x, other):
        return x.to(other.dtype)

    @staticmethod
    def sum_wide(x, axis):
        return x.sum(axis, dtype=x.dtype if x.dtype == torch.float64 else torch.float32)

    @staticmethod
    def swap(x):
        return x.mT

    @staticmethod
    def conv3x3(x, w):
        w = w.reshape(3, 3, x.shape[3], -1).permute(3, 2, 0, 1)
        y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w, padding=1)
        return y.permute(0, 2, 3, 1)

    @staticmethod
    def places(s):
        """The row and the column of each score."""
        i, j = (torch.arange(n, device=s.device) for n in s.shape[-2:])
        return i[:, None], j[None, :]

    @staticmethod
    def hide(s, sees):
        return torch.where(sees, s, float("-inf"))

    @staticmethod
    def causal(s):
        i, j = TorchOps.places(s)
        return TorchOps.hide(s, j <= i)


def make_jax_ops():
    import jax
    import jax.numpy as jnp

    class JaxOps:
        relu, silu, rsqrt = jax.nn.relu, jax.nn.silu, jax.lax.rsqrt
        batched = staticmethod(jnp.matmul)

        softmax = staticmethod(jax.nn.softmax)

        @staticmethod
        def mm(x, w, layout):
            return jnp.matmul(x, w if layout == "kn" else w.T)

        @staticmethod
        def gelu(x):
            return jax.nn.gelu(x, approximate=True)

        @staticmethod
        def mean(x, axis):
            return jnp.mean(x, axis, keepdims=True)

        @staticmethod
        def wide(x):
            return x.astype(jnp.float32)

        @staticmethod
        def like(x, other):
            return x.astype(other.dtype)

        @staticmethod
        def sum_wide(x, axis):
            return jnp.sum(x, axis, dtype=jnp.float32)

        @staticmethod
        def swap(x):
            return jnp.swapaxes(x, -1, -2)

        @staticmethod
        def conv3x3(x, w):
            return jax.lax.conv_general_dilated(
                x, w.reshape(3, 3, x.shape[3], -1), (1, 1), "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"))

        @staticmethod
        def causal(s):
            i = jnp.arange(s.shape[-1])
            return jnp.where(i[None, :] <= i[:, None], s, -jnp.inf)
    return JaxOps


# ---- buffers ----

def make_tensor(tensor, generator):
    if tensor.values:
        made = torch.tensor(tensor.values(), dtype=torch.float64).reshape(tensor.shape).cuda()
    else:
        made = torch.randn(tensor.shape, generator=generator, device="cuda") * tensor.scale
    return made.to(TORCH[tensor.dtype])


class Buffers:
    """Sets of inputs and outputs that are taken in turn, so many that no run finds its data in the
    cache: together at least `rotate_bytes`, but at most `max_sets`. Large data has some sets too,
    so that where they happen to lie in memory evens out. Params are the same in all sets: the
    weights of a model stay where they are."""
    MIN_SETS = 3

    def __init__(self, case, seed, rotate_bytes, max_sets):
        self.case = case
        n = min(max_sets, max(self.MIN_SETS, math.ceil(rotate_bytes / case.n_bytes())))
        generator = torch.Generator("cuda").manual_seed(seed)
        self.inputs = [[make_tensor(t, generator) for t in case.inputs]]
        for _ in range(n - 1):
            self.inputs.append([first if t.is_param else make_tensor(t, generator)
                                for t, first in zip(case.inputs, self.inputs[0])])
        self.weights = case.weights or {
            t.name: data for t, data in zip(case.inputs, self.inputs[0]) if t.is_param}
        self.expected = None

    def outputs(self):
        """A set of outputs for each set of inputs, poisoned: what is not written is no number."""
        return [[torch.full(t.shape, float("nan"), device="cuda", dtype=TORCH[t.dtype])
                 for t in self.case.outputs] for _ in self.inputs]

    def reference(self):
        """The outputs of the first set, in float64."""
        if self.expected is None:
            with torch.no_grad():
                wide = [t.double() if t.is_floating_point() else t for t in self.inputs[0]]
                self.expected = self.case.fn(TorchOps, *wide)
        return self.expected


def error_of(results, reference):
    """The norm of the difference over the norm of the reference, the worst of all outputs."""
    worst = 0.0
    for result, expected in zip(results, reference, strict=True):
        if tuple(result.shape) != tuple(expected.shape):
            raise fusert.Error(f"the result is {tuple(result.shape)}, not {tuple(expected.shape)}")
        difference = (result.double() - expected).norm() / expected.norm()
        value = difference.item()
        worst = value if not value <= worst else worst  # NaN stays
    return worst


# ---- contenders ----

class Contender:
    """`calls[i]()` runs it once on buffer set i, on the current stream, and returns its outputs."""
    is_captured = True

    def __init__(self, name, layout):
        self.name, self.layout = name, layout
        self.compile_ms = None  # source to something that runs
        self.notes = {}
        self.calls = []

    def close(self):
        self.calls = []


class Fusec(Contender):
    def __init__(self, libraries, target, case, buffers, numerics="strict"):
        super().__init__("fusec" if numerics == "strict" else numerics, case.layout)
        self.numerics = numerics
        self.program, self.execs, self.outputs = None, [], []
        try:
            self.make(libraries, target, case, buffers)
        except Exception:
            self.close()
            raise

    def make(self, libraries, target, case, buffers):
        begin = time.perf_counter()
        artifact = libraries.compile(case.source, target, "workload.g", self.numerics)
        middle = time.perf_counter()
        program = self.program = libraries.program(artifact)
        end = time.perf_counter()
        loaded_ms = program.load_ms()
        self.notes["ptx_ms"] = 1e3 * (middle - begin)
        self.notes["ptx_bytes"] = len(artifact)
        self.notes["launches"] = program.n_launches()
        for name, key in program.params():
            data = buffers.weights[key].contiguous().view(torch.uint8)
            program.set_param(name, data.cpu().numpy().tobytes())
        for i, (inputs, outputs) in enumerate(zip(buffers.inputs, buffers.outputs())):
            self.bind(case, inputs, outputs)
            if i == 0:  # what was loaded when it was first needed counts
                self.compile_ms = 1e3 * (end - begin) + program.load_ms() - loaded_ms
        self.notes["kernels"] = [
            {"label": label, "registers": registers, "local_bytes": local, "shared_bytes": shared}
            for label, registers, local, shared in self.execs[0].kernels()]

    def bind(self, case, inputs, outputs):
        program, tensors = self.program, {}
        for tensor, data in zip(case.inputs + case.outputs, inputs + outputs):
            if not tensor.is_param:
                tensors[tensor.name] = (data.data_ptr(), tensor.dtype, tensor.shape)
        torch.cuda.synchronize()
        loaded_ms, begin = program.load_ms(), time.perf_counter()
        exec_ = program.exec(tensors)
        torch.cuda.synchronize()
        if not self.execs and program.persistent():  # preparing was loading and the init steps
            self.notes["init_ms"] = (1e3 * (time.perf_counter() - begin) + loaded_ms
                                     - program.load_ms())
            self.notes["init_bytes"] = sum(
                math.prod(exec_.shape(name)) * fusert.DTYPE_BYTES[dtype]
                for name, dtype in program.persistent())
        self.execs.append(exec_)
        self.outputs.append(outputs)

        def call():
            exec_.run(torch.cuda.current_stream().cuda_stream)
            return outputs
        self.calls.append(call)

    def n_differing(self, replay):
        """Of how many sets a replay of calls, which follow one another closely, leaves other bits
        than a call by itself."""
        for outputs in self.outputs:
            for t in outputs:
                t.fill_(float("nan"))
        torch.cuda.synchronize()
        replay()
        torch.cuda.synchronize()
        n = 0
        for call, outputs in zip(self.calls, self.outputs):
            replayed = [t.clone() for t in outputs]
            for t in outputs:
                t.fill_(float("nan"))
            torch.cuda.synchronize()
            call()
            torch.cuda.synchronize()
            n += not all(torch.equal(a.flatten().view(torch.uint8), b.flatten().view(torch.uint8))
                         for a, b in zip(replayed, outputs, strict=True))
        return n

    def close(self):
        super().close()
        self.outputs = []
        for exec_ in self.execs:
            exec_.close()
        if self.program:
            self.program.close()


def pinned(backend):
    """The context in which PyTorch's attention runs on one backend, or fails."""
    attention = torch.nn.attention
    kinds = {"cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION",
             "efficient": "EFFICIENT_ATTENTION"}
    return attention.sdpa_kernel([getattr(attention.SDPBackend, kinds[backend])])


class Torch(Contender):
    """A function of torch, compiled where `mode` says how, on one backend for attention where
    `pin` names it."""

    def __init__(self, name, case, buffers, function, mode=None, pin=None):
        super().__init__(name, case.layout)

        def plain(*inputs):
            return function(torch, *inputs)

        def run(*inputs):
            with torch.no_grad(), pinned(pin) if pin else contextlib.nullcontext():
                return compiled(*inputs)
        compiled = plain
        if mode:
            torch._dynamo.reset()
            compiled = torch.compile(plain, dynamic=False, mode=None if mode == "default" else mode)
            self.notes["mode"] = mode
        ready = case.ready.get(name)
        rest = (ready(torch, *buffers.inputs[0]),) if ready else ()
        torch.cuda.synchronize()
        if mode:
            begin = time.perf_counter()
            run(*buffers.inputs[0], *rest)
            torch.cuda.synchronize()
            self.compile_ms = 1e3 * (time.perf_counter() - begin)
        self.calls = [lambda inputs=inputs: run(*inputs, *rest) for inputs in buffers.inputs]


class Xla(Contender):
    """Jitted by JAX. It cannot be captured on our stream, so the clock times it. Where there are
    several sets of buffers, one executable takes many of them, so that dispatch is shared; XLA may
    arrange that as it likes. With one set each call is a dispatch."""
    is_captured = False
    MAX_BATCH = 16

    def __init__(self, case, buffers):
        import jax
        super().__init__("xla", case.layout)
        ops = make_jax_ops()
        precision = {"f32": "highest", "tf32": "tensorfloat32"}.get(case.unit)
        torch.cuda.synchronize()
        self.inputs = [[jax.dlpack.from_dlpack(t) for t in inputs] for inputs in buffers.inputs]

        def one(*inputs):
            return case.fn(ops, *inputs)

        def batch(sets):
            return [one(*inputs) for inputs in sets]
        batched = self.inputs[:self.MAX_BATCH]
        with jax.default_matmul_precision(precision) if precision else contextlib.nullcontext():
            begin = time.perf_counter()
            self.one = jax.jit(one).lower(*self.inputs[0]).compile()
            self.compile_ms = 1e3 * (time.perf_counter() - begin)
            self.batch = jax.jit(batch).lower(batched).compile() if len(batched) > 1 else None
        self.batched = batched
        self.block = jax.block_until_ready
        self.notes["batch"] = len(batched)
        self.calls = [lambda inputs=inputs: self.to_torch(self.one(*inputs))
                      for inputs in self.inputs]

    def to_torch(self, results):
        self.block(results)
        return [torch.from_dlpack(r) for r in results]

    def timed(self, n):
        """Seconds of one run, of n passes over the sets."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            results = self.batch(self.batched) if self.batch else self.one(*self.inputs[0])
        self.block(results)
        return (time.perf_counter() - begin) / (n * len(self.batched))

    def close(self):
        super().close()
        self.inputs = self.batched = self.one = self.batch = None
