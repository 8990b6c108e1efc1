"""The C interfaces of libfusec and libfusert, by ctypes: source text to a program that runs on
memory and a stream of the caller's. Only what the benchmark needs; the headers specify.
"""

import ctypes as c
import os

MAX_RANK = 8
KIND_PTX, KIND_OBJECT = 5, 7  # fusec_kinds.def
DTYPE_NAMES = ["f64", "f32", "f16", "bf16", "i32", "bool", "i64", "i8", "u8", "u16", "u32", "i16", "f8e4m3",
               "f8e5m2"]  # frt_dtype.def
DTYPES = {name: k for k, name in enumerate(DTYPE_NAMES)}
ROLE_INPUT, ROLE_PARAM, ROLE_OUTPUT = range(3)
DTYPE_BYTES = [8, 4, 2, 2, 4, 1, 8, 1, 1, 2, 4, 2, 1, 1]
PHASE_INIT = 0


class Error(Exception):
    """What a library said."""


class frt_error(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("status", c.c_int), ("cuda", c.c_int32),
                ("message", c.c_char * 512)]


class frt_tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("rank", c.c_int32),
                ("dims", c.c_int64 * MAX_RANK)]


class frt_program_options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("device_ordinal", c.c_int32),
                ("cu_context", c.c_void_p), ("n_threads", c.c_int32),
                ("parallel_for", c.c_void_p), ("parallel_ctx", c.c_void_p),
                ("weights_path", c.c_char_p), ("base_dir", c.c_char_p), ("no_weights", c.c_bool),
                ("alloc", c.c_void_p), ("free", c.c_void_p), ("allocator_ctx", c.c_void_p),
                ("cuda_lookup", c.c_void_p), ("cuda_lookup_ctx", c.c_void_p)]


class frt_graph_info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("n_tensors", c.c_int32),
                ("n_inputs", c.c_int32), ("n_params", c.c_int32), ("n_outputs", c.c_int32),
                ("n_temps", c.c_int32), ("n_steps", c.c_int32), ("n_launches", c.c_int32)]


class frt_tensor_info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("weights_key", c.c_char_p),
                ("role", c.c_int), ("dtype", c.c_int), ("rank", c.c_int32), ("device", c.c_int32),
                ("is_persistent", c.c_bool)]


class frt_module_info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("target", c.c_int), ("code", c.c_int),
                ("arch", c.c_char_p), ("numerics", c.c_char_p), ("compiler", c.c_char_p),
                ("source", c.c_char_p), ("weights", c.c_char_p), ("checksum", c.c_uint32),
                ("n_dims", c.c_int32), ("n_graphs", c.c_int32), ("code_bytes", c.c_size_t)]


class frt_dim_info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("lo", c.c_int64),
                ("hi", c.c_int64), ("multiple", c.c_int64)]


class frt_step_info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kind", c.c_int), ("phase", c.c_int),
                ("label", c.c_char_p), ("line", c.c_int32), ("n_args", c.c_int32),
                ("n_dims", c.c_int32), ("n_variants", c.c_int32)]


class frt_kernel_info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("n_registers", c.c_int32),
                ("local_bytes", c.c_int32), ("shared_bytes", c.c_int32)]


class frt_load_info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("ms", c.c_double), ("is_compiled", c.c_bool),
                ("is_cached", c.c_bool), ("n_kernels", c.c_int32), ("n_loaded", c.c_int32)]


class fusec_options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kind", c.c_int), ("target", c.c_char_p),
                ("source_name", c.c_char_p), ("numerics", c.c_char_p), ("no_fuse", c.c_bool),
                ("explain", c.c_bool)]


def info(kind):
    """An info struct, ready to be filled."""
    return kind(struct_size=c.sizeof(kind))


P, Z, I, STR = c.c_void_p, c.c_size_t, c.c_int32, c.c_char_p
ERR = c.POINTER(frt_error)
COMPILER = {  # name: (result, arguments)
    "fusec_version": (STR, []),
    "fusec_llvm_version": (STR, []),
    "fusec_target_name": (STR, [Z]),
    "fusec_compile": (c.c_int, [STR, Z, c.POINTER(fusec_options), c.POINTER(P)]),
    "fusec_result_free": (None, [P]),
    "fusec_result_bytes": (P, [P, c.POINTER(Z)]),
    "fusec_result_messages": (STR, [P]),
}
RUNTIME = {
    "frt_version": (STR, []),
    "frt_module_load_memory": (c.c_int, [P, Z, c.POINTER(P), ERR]),
    "frt_module_free": (None, [P]),
    "frt_module_get_info": (c.c_int, [P, c.POINTER(frt_module_info)]),
    "frt_module_get_dim": (c.c_int, [P, I, c.POINTER(frt_dim_info)]),
    "frt_module_eval_shape": (c.c_int, [P, I, I, c.POINTER(c.c_int64), c.POINTER(c.c_int64), ERR]),
    "frt_module_get_graph": (c.c_int, [P, I, c.POINTER(frt_graph_info)]),
    "frt_module_get_tensor": (c.c_int, [P, I, I, c.POINTER(frt_tensor_info)]),
    "frt_module_get_step": (c.c_int, [P, I, I, c.POINTER(frt_step_info)]),
    "frt_program_create": (c.c_int, [P, STR, c.POINTER(frt_program_options), c.POINTER(P), ERR]),
    "frt_program_free": (None, [P]),
    "frt_program_set_param": (c.c_int, [P, STR, P, Z, ERR]),
    "frt_program_get_kernel": (c.c_int, [P, I, I, c.POINTER(frt_kernel_info), ERR]),
    "frt_program_get_load": (c.c_int, [P, c.POINTER(frt_load_info)]),
    "frt_device_alloc": (c.c_int, [P, Z, c.POINTER(P), ERR]),
    "frt_device_free": (None, [P, P, Z]),
    "frt_copy_to_device": (c.c_int, [P, P, P, Z, ERR]),
    "frt_copy_from_device": (c.c_int, [P, P, P, Z, ERR]),
    "frt_exec_create": (c.c_int, [P, c.POINTER(P), ERR]),
    "frt_exec_free": (None, [P]),
    "frt_bind": (c.c_int, [P, STR, c.POINTER(frt_tensor), ERR]),
    "frt_output_shape": (c.c_int, [P, STR, c.POINTER(c.c_int64), c.POINTER(I), ERR]),
    "frt_prepare": (c.c_int, [P, ERR]),
    "frt_run": (c.c_int, [P, P, ERR]),
    "frt_time_runs": (c.c_int, [P, P, I, c.POINTER(c.c_float), ERR]),
    "frt_exec_variant": (I, [P, I]),
}


def load(path, functions):
    library = c.CDLL(path)
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Libraries:
    """Both libraries, from one folder."""

    def __init__(self, folder):
        self.fusec = load(os.path.join(folder, "libfusec.so"), COMPILER)
        self.frt = load(os.path.join(folder, "libfusert.so"), RUNTIME)

    def versions(self):
        return {"fusec": self.fusec.fusec_version().decode(),
                "llvm": self.fusec.fusec_llvm_version().decode(),
                "fusert": self.frt.frt_version().decode()}

    def targets(self):
        names = []
        while name := self.fusec.fusec_target_name(len(names)):
            names.append(name.decode())
        return names

    def target_for(self, capability):
        """The target for a device of compute capability (major, minor): its own, else the latest
        that it can run."""
        sm = capability[0] * 10 + capability[1]
        names = self.targets()
        if f"sm_{sm}a" in names:
            return f"sm_{sm}a"
        older = [n for n in names if n[:3] == "sm_" and n[3:].isdigit() and int(n[3:]) <= sm]
        if not older:
            raise Error(f"there is no target for a device of sm_{sm}")
        return max(older, key=lambda n: int(n[3:]))

    def compile(self, source, target, name, numerics="strict", no_fuse=False):
        """Source text to an artifact's bytes: PTX, or an object for a CPU."""
        text = source.encode()
        kind = KIND_PTX if target.startswith("sm_") else KIND_OBJECT
        options = fusec_options(c.sizeof(fusec_options), kind, target.encode(), name.encode(),
                                numerics.encode(), no_fuse)
        result = P()
        status = self.fusec.fusec_compile(text, len(text), c.byref(options), c.byref(result))
        try:
            if status:
                raise Error(self.fusec.fusec_result_messages(result).decode().strip())
            n_bytes = Z()
            data = self.fusec.fusec_result_bytes(result, c.byref(n_bytes))
            return c.string_at(data, n_bytes.value)
        finally:
            self.fusec.fusec_result_free(result)

    def call(self, name, *arguments):
        """A call of the runtime whose last argument is the error."""
        error = frt_error(struct_size=c.sizeof(frt_error))
        if getattr(self.frt, name)(*arguments, c.byref(error)):
            raise Error(error.message.decode(errors="replace"))

    def program(self, artifact, graph=None):
        return Program(self, artifact, graph)


class Program:
    """A graph of an artifact, by default the only one, on the CUDA device in use, or on the CPU with
    so many threads."""

    def __init__(self, libraries, artifact, graph=None, n_threads=0):
        self.lib = libraries
        self.module, self.handle = P(), P()
        libraries.call("frt_module_load_memory", artifact, len(artifact), c.byref(self.module))
        options = frt_program_options(struct_size=c.sizeof(frt_program_options),
                                      no_weights=True, n_threads=n_threads)
        try:
            libraries.call("frt_program_create", self.module, graph and graph.encode(),
                           c.byref(options), c.byref(self.handle))
        except Error:
            self.close()
            raise
        self.graph, self.index = info(frt_graph_info), -1
        while self.index < 0 or (graph and self.graph.name.decode() != graph):
            self.index += 1
            libraries.frt.frt_module_get_graph(self.module, self.index, c.byref(self.graph))

    def close(self):
        self.lib.frt.frt_program_free(self.handle)
        self.lib.frt.frt_module_free(self.module)
        self.module, self.handle = P(), P()

    def steps(self):
        for i in range(self.graph.n_steps):
            step = info(frt_step_info)
            self.lib.frt.frt_module_get_step(self.module, self.index, i, c.byref(step))
            yield i, step

    def set_param(self, name, data):
        """`data`: its elements, as host bytes."""
        self.lib.call("frt_program_set_param", self.handle, name.encode(), data, len(data))

    def params(self):
        """(name, key in the weights file) of each."""
        for i in range(self.graph.n_tensors):
            tensor = info(frt_tensor_info)
            self.lib.frt.frt_module_get_tensor(self.module, self.index, i, c.byref(tensor))
            if tensor.role == ROLE_PARAM:
                yield tensor.name.decode(), (tensor.weights_key or tensor.name).decode()

    def load_ms(self):
        """Spent so far on bringing kernels to the device."""
        load = info(frt_load_info)
        self.lib.frt.frt_program_get_load(self.handle, c.byref(load))
        return load.ms

    def alloc(self, n_bytes):
        """Device memory, or host memory for a CPU."""
        data = P()
        self.lib.call("frt_device_alloc", self.handle, n_bytes, c.byref(data))
        return data.value

    def free(self, data, n_bytes):
        self.lib.frt.frt_device_free(self.handle, data, n_bytes)

    def put(self, data, host, n_bytes):
        """Bytes at a host address to the device."""
        self.lib.call("frt_copy_to_device", self.handle, data, host, n_bytes)

    def get(self, host, data, n_bytes):
        """Device bytes to a host address, after all that runs."""
        self.lib.call("frt_copy_from_device", self.handle, host, data, n_bytes)

    def n_launches(self):
        return sum(step.phase != PHASE_INIT for _, step in self.steps())

    def persistent(self):
        """Names of the tensors that init steps write and the program keeps."""
        names = []
        for i in range(self.graph.n_tensors):
            tensor = info(frt_tensor_info)
            self.lib.frt.frt_module_get_tensor(self.module, self.index, i, c.byref(tensor))
            if tensor.is_persistent:
                names.append((tensor.name, tensor.dtype))
        return names

    def tensors(self, dim_values):
        """(name, role, dtype, shape) of inputs, params and outputs, at values of the dims by name:
        the roles of frt_role."""
        module = info(frt_module_info)
        self.lib.frt.frt_module_get_info(self.module, c.byref(module))
        values = (c.c_int64 * max(1, module.n_dims))()
        for i in range(module.n_dims):
            dim = info(frt_dim_info)
            self.lib.frt.frt_module_get_dim(self.module, i, c.byref(dim))
            wanted = dim_values.get(dim.name.decode(), dim.lo)
            values[i] = min(max(wanted, dim.lo), dim.hi) // dim.multiple * dim.multiple
        for i in range(self.graph.n_inputs + self.graph.n_params + self.graph.n_outputs):
            tensor, shape = info(frt_tensor_info), (c.c_int64 * MAX_RANK)()
            self.lib.frt.frt_module_get_tensor(self.module, self.index, i, c.byref(tensor))
            self.lib.call("frt_module_eval_shape", self.module, self.index, i, values, shape)
            yield (tensor.name.decode(), tensor.role, DTYPE_NAMES[tensor.dtype],
                   list(shape[:tensor.rank]))

    def exec(self, tensors):
        return Exec(self, tensors)


class Exec:
    """Bindings: `tensors` maps a name to (address, dtype name, shape). Prepared when made, and when
    bound again."""

    def __init__(self, program, tensors):
        self.program, self.lib = program, program.lib
        self.handle = P()
        self.lib.call("frt_exec_create", program.handle, c.byref(self.handle))
        self.error = frt_error(struct_size=c.sizeof(frt_error))
        try:
            self.bind(tensors)
        except Error:
            self.close()
            raise

    def bind(self, tensors):
        for name, (address, dtype, shape) in tensors.items():
            tensor = frt_tensor(address, DTYPES[dtype], len(shape))
            tensor.dims[:len(shape)] = shape
            self.lib.call("frt_bind", self.handle, name.encode(), c.byref(tensor))
        self.lib.call("frt_prepare", self.handle)

    def run(self, stream):
        if self.lib.frt.frt_run(self.handle, stream, c.byref(self.error)):
            raise Error(self.error.message.decode(errors="replace"))

    def close(self):
        self.lib.frt.frt_exec_free(self.handle)
        self.handle = P()

    def shape(self, name):
        dims, rank = (c.c_int64 * MAX_RANK)(), I()
        self.lib.call("frt_output_shape", self.handle, name, dims, c.byref(rank))
        return list(dims[:rank.value])

    def variant(self, step):
        """Which variant of a step's kernel runs; -1: none."""
        return self.lib.frt.frt_exec_variant(self.handle, step)

    def kernels(self):
        """What the driver made of each launch: (label, registers, local bytes, shared bytes)."""
        for i, step in self.program.steps():
            variant = self.variant(i)
            if variant < 0:
                continue
            kernel = info(frt_kernel_info)
            self.lib.call("frt_program_get_kernel", self.program.handle, i, variant,
                          c.byref(kernel))
            yield (step.label.decode(), kernel.n_registers, kernel.local_bytes,
                   kernel.shared_bytes)
