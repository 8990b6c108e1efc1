"""The contenders of a case on CPU threads: fusec, and PyTorch, `torch.compile` with frozen weights,
XLA and ONNX Runtime in their best forms. Each computes the same from the same numbers in one process.
`run()` is one run and `result()` what it gave; `runs(n)` is the least time of n, in microseconds.
"""

import ctypes as c
import functools
import time

import numpy
import torch

import fusert
from contenders import TorchOps, make_jax_ops

TORCH = {"f32": torch.float32, "bf16": torch.bfloat16, "i8": torch.int8, "i32": torch.int32}
ONNX = {"f32": "float", "i8": "int8", "i32": "int32"}


class CpuOps(TorchOps):
    """The functions of PyTorch that its CPU library is fastest with. `relu` writes in place: no
    workload has it of an input."""
    relu = torch.relu_

    @staticmethod
    def linear(x, w, b, layout):
        return torch.addmm(b, x, w) if layout == "kn" else torch.nn.functional.linear(x, w, b)

    @staticmethod
    def mm_i8(x, w, layout):
        return torch._int_mm(x, w if layout == "kn" else w.t())

    @staticmethod
    def convolve(drawn, layout, x, w, b):
        """Images with their channels last are images of PyTorch in another memory format."""
        functional = torch.nn.functional
        convolve = functional.conv_transpose2d if drawn.is_transposed else functional.conv2d
        if layout == "last":
            x, w = x.permute(0, 3, 1, 2), w.contiguous(memory_format=torch.channels_last)
        y = convolve(x, w, b, stride=drawn.stride, padding=drawn.padding, dilation=drawn.dilation,
                     groups=drawn.groups)
        return y.permute(0, 2, 3, 1) if layout == "last" else y


def jax_ops():
    import jax
    import jax.numpy as jnp

    class Ops(make_jax_ops()):
        @staticmethod
        def linear(x, w, b, layout):
            return jnp.matmul(x, w if layout == "kn" else w.T) + b

        @staticmethod
        def mm_i8(x, w, layout):
            w = w if layout == "kn" else w.T
            return jax.lax.dot(x, w, preferred_element_type=jnp.int32)

        @staticmethod
        def convolve(drawn, layout, x, w, b):
            image = "NHWC" if layout == "last" else "NCHW"
            steps, reach, padding = drawn.stride, (1, 1), drawn.padding
            if drawn.is_transposed:
                w = jnp.flip(w, (2, 3)) if drawn.groups > 1 else jnp.flip(w, (2, 3)).swapaxes(0, 1)
                steps, reach, padding = 1, (drawn.stride,) * 2, drawn.reach - 1 - drawn.padding
            y = jax.lax.conv_general_dilated(
                x, w, (steps,) * 2, [(padding,) * 2] * 2, reach, (drawn.dilation,) * 2,
                (image, "OIHW", image), drawn.groups)
            return y + (b if layout == "last" else b[:, None, None])
    return Ops


def draw(case):
    """Inputs and params."""
    torch.manual_seed(1)
    if case.dtype == "i8":
        return [torch.randint(-128, 128, s, dtype=torch.int8) for s in case.inputs + case.params]
    inputs = [torch.randn(s) for s in case.inputs]
    params = [torch.randn(s) / (s[0] ** 0.5 if len(s) > 1 else 1.0) for s in case.params]
    return [t.to(TORCH[case.dtype]) for t in inputs + params]


class Fusec:
    """A program on so many threads, on target `target`."""

    def __init__(self, libraries, target, case, tensors, n_threads):
        self.lib, self.exec, self.program = libraries, None, None
        numerics = "fast" if case.dtype == "bf16" else "strict"
        artifact = libraries.compile(case.source(), target, "g.g", numerics)
        self.program = fusert.Program(libraries, artifact, n_threads=n_threads)
        n = len(case.inputs)
        for i, w in enumerate(tensors[n:]):
            libraries.call("frt_program_set_param", self.program.handle, f"w{i}".encode(),
                           w.data_ptr(), w.numel() * w.element_size())
        self.y = torch.empty(case.result, dtype=TORCH[case.out or case.dtype])
        bound = {f"x{i}": (t.data_ptr(), case.dtype, t.shape) for i, t in enumerate(tensors[:n])}
        bound["y"] = (self.y.data_ptr(), case.out or case.dtype, self.y.shape)
        self.exec = fusert.Exec(self.program, bound)

    def run(self):
        self.exec.run(None)

    def result(self):
        return self.y

    def runs(self, n):
        """Timed by the library: a call from Python takes a microsecond."""
        ms = (c.c_float * n)()
        self.lib.call("frt_time_runs", self.exec.handle, None, n, ms)
        return min(ms) * 1e3

    def close(self):
        if self.exec:
            self.exec.close()
        if self.program:
            self.program.close()


class Called:
    """A peer that is a call from Python."""

    def __init__(self, call, to_torch=lambda y: y):
        self.call, self.to_torch = call, to_torch

    def run(self):
        self.y = self.call()

    def result(self):
        return self.to_torch(self.y)

    def runs(self, n):
        least = float("inf")
        for _ in range(n):
            begin = time.perf_counter()
            self.call()
            least = min(least, time.perf_counter() - begin)
        return least * 1e6

    def close(self):
        self.call = None


def eager(form, tensors, back):
    return Called(lambda: form(*tensors), back)


class Frozen(torch.nn.Module):
    """A form with its params as constants, which the compiler may pack."""

    def __init__(self, form, params):
        super().__init__()
        self.form = form
        for i, w in enumerate(params):
            self.register_buffer(f"w{i}", w)
        self.n = len(params)

    def forward(self, *inputs):
        params = [getattr(self, f"w{i}") for i in range(self.n)]
        return self.form(*inputs, *params)


def compiled(case, form, tensors, back):
    import torch._inductor.config
    torch._inductor.config.freezing = True
    torch._dynamo.reset()
    n = len(case.inputs)
    module = torch.compile(Frozen(form, tensors[n:]).eval(), dynamic=False)
    return Called(lambda: module(*tensors[:n]), back)


def xla(case, layout, tensors, back):
    import jax
    import jax.numpy as jnp
    dtypes = {"bf16": jnp.bfloat16, "f32": jnp.float32, "i8": jnp.int8}
    ops, cpu = jax_ops(), jax.devices("cpu")[0]
    arrays = [jax.device_put(jnp.asarray(t.float().numpy(), dtype=dtypes[case.dtype]), cpu)
              for t in tensors]
    function = jax.jit(lambda *a: case.function(ops, layout, *a)).lower(*arrays).compile()
    return Called(lambda: jax.block_until_ready(function(*arrays)),
                  lambda y: back(torch.from_numpy(numpy.array(y.astype(jnp.float32)))))


def onnx_model(case, tensors):
    """Weights are initializers, which the runtime packs."""
    import onnx
    import onnx.numpy_helper
    n = len(case.inputs)
    inputs = ", ".join(f"{ONNX[case.dtype]}[{', '.join(map(str, t.shape))}] x{i}"
                       for i, t in enumerate(tensors[:n]))
    extents = ", ".join(f"n{i}" for i in range(len(case.result)))
    result = f"{ONNX[case.out or case.dtype]}[{extents}] y"
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20]> g ({inputs}) => ({result}) {{ {case.onnx} }}')
    for i, w in enumerate(tensors[n:]):
        model.graph.initializer.append(onnx.numpy_helper.from_array(w.numpy(), f"w{i}"))
    return model.SerializeToString()


def onnxruntime(case, tensors, n_threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    session = onnxruntime.InferenceSession(onnx_model(case, tensors), options,
                                           providers=["CPUExecutionProvider"])
    inputs = {f"x{i}": t.numpy() for i, t in enumerate(tensors[:len(case.inputs)])}
    result = onnxruntime.OrtValue.ortvalue_from_numpy(session.run(None, inputs)[0])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    binding.bind_ortvalue_output("y", result)
    return Called(lambda: session.run_with_iobinding(binding),
                  lambda y: case.unlay(case.layouts[0], torch.from_numpy(result.numpy())))


def peers(case, tensors, n_threads, wanted):
    """(name, how it is made) of each peer that has a form of this case. `torch.compile` packs frozen
    weights of products itself, so it gets them in one layout."""
    functions = {"": case.function, **case.variants}
    for layout in case.layouts:
        data = case.lay(layout, tensors)
        one_is_enough = layout == "nk"

        back = functools.partial(case.unlay, layout)
        for variant, function in functions.items():
            name = " ".join(filter(None, [variant, layout]))
            form = functools.partial(function, CpuOps, layout)
            if "torch" in wanted:
                yield f"torch {name}".strip(), functools.partial(eager, form, data, back)
            if "compile" in wanted and not one_is_enough:
                yield f"compile {name}".strip(), functools.partial(compiled, case, form, data, back)
        if "xla" in wanted:
            yield f"xla {layout}".strip(), functools.partial(xla, case, layout, data, back)
    if "ort" in wanted and case.onnx and case.dtype in ONNX:
        data = case.lay(case.layouts[0], tensors)
        yield "ort", functools.partial(onnxruntime, case, data, n_threads)
