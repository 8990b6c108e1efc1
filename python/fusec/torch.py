"""Translates what `torch.export` gives into a `.g` source and its weights.

python -m fusec.torch model.py:make -o model.g

`make()` returns (model, args) or (model, args, dynamic_shapes). A node of the exported graph becomes a statement, by
the row of its op in aten.py. Shapes and dtypes are those that PyTorch noted of each node, so arithmetic of shapes
leaves no statement behind.
"""
import argparse
import importlib.util
import operator
import os
import re
import sys
import types

import sympy
import torch
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from fusec.aten import DEFS, OPS, Unsupported, why_not

DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.bool: "bool",
    torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2",
}
RESERVED = {"graph", "param", "def", "return", "kernel", "true", "false", "none", "inf", "nan", "loop", "fuse", "if",
            "else", "in", "with", "as", "dim", "weights", "include", *DTYPES.values()}
# Checks of what the example's shapes imply: they compute nothing.
CHECKS = {"_assert_scalar", "_assert_async", "_assert_tensor_metadata", "sym_constrain_range",
          "sym_constrain_range_for_size"}
LARGEST_DIM = 65536  # of a dim for which the program names no upper bound


class Value:
    """A tensor of the program: its text, its extents as numbers or texts, its dtype's word, PyTorch's strides."""

    def __init__(self, text, shape, dtype, strides=None):
        self.text, self.shape, self.dtype, self.strides = text, shape, dtype, strides

    def __str__(self):
        return self.text

    @property
    def rank(self):
        return len(self.shape)

    @property
    def is_float(self):
        return self.dtype[0] == "f" or self.dtype == "bf16"

    def to(self, dtype):
        if self.dtype == dtype:
            return self
        return Value(f"cast({self.text}, {dtype})", self.shape, dtype)


class Item(Value):
    """A number that `.item()` takes from a tensor. It may be an operand, which is a tensor of rank 0."""

    def to(self, dtype):
        return Value(self.text, self.shape, self.dtype).to(dtype)

    def __str__(self):
        raise Unsupported("a number that .item() takes from a tensor is known only at run time: it may be an operand of "
                          "arithmetic, and neither an extent nor an index; use index_select, where or a mask")

    __repr__ = __index__ = __str__


class Program:
    """A source of the language and the tensors of its weights."""

    def __init__(self, source, weights, inputs, outputs, ops):
        self.source, self.weights, self.inputs, self.outputs = source, weights, inputs, outputs
        self.ops = ops  # the rows of the table that wrote it, each with a text of its own

    def save(self, path):
        """Writes `path`, and the weights beside it under the same name with .safetensors."""
        from safetensors.torch import save_file

        beside = os.path.splitext(path)[0] + ".safetensors"
        if beside == path:
            raise Unsupported(f"{path} is the file of the weights; name the source, such as model.g")
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise Unsupported(f"there is no folder {folder}")
        head = ""
        if self.weights:
            save_file(self.weights, beside)
            head = f'weights "{os.path.basename(beside)}"\n\n'
        with open(path, "w") as file:
            file.write(head + self.source)


class Names:
    """Identifiers of the language, each given once."""

    def __init__(self):
        self.taken = set(RESERVED)

    def new(self, wanted):
        base = "".join(c if c.isascii() and c.isalnum() else "_" for c in wanted)
        base = base if base[:1].isalpha() else "v" + base
        name, k = base, 1
        while name in self.taken:
            k += 1
            name = f"{base}_{k}"
        self.taken.add(name)
        return name


class Translator:
    def __init__(self, exported, dynamic_shapes, name, given=None):
        self.exported, self.name = exported, name
        self.given = given or {}  # ranges by the names of dims
        self.names, self.values, self.dims = Names(), {}, {}
        self.inputs, self.params, self.lines, self.weights = [], [], [], {}
        self.ops = {}
        self.ranges = exported.range_constraints
        self.wanted_dims = {}
        self.of_inputs = {symbol for node in exported.graph.nodes if node.op == "placeholder"
                          for size in getattr(node.meta.get("val"), "shape", ()) if hasattr(size, "node")
                          for symbol in size.node.expr.free_symbols}
        self.note_dims(dynamic_shapes)

    # ---- dims ----

    def note_dims(self, spec):
        """The names that `dynamic_shapes` gives to the symbols of the inputs' shapes."""
        nodes = {n.name: n for n in self.exported.graph.nodes if n.op == "placeholder"}
        tensors = [nodes[s.arg.name] for s in self.exported.graph_signature.input_specs
                   if s.kind is InputKind.USER_INPUT and isinstance(s.arg, TensorArgument)]
        for node, axes in zip(tensors, tensor_specs(spec)):
            for axis, dim in axes:
                symbols = getattr(getattr(getattr(node.meta["val"].shape[axis], "node", None), "expr", None), "free_symbols", ())
                name = getattr(getattr(dim, "root", dim), "__name__", None)  # of `4 * T` that of T
                if len(symbols) == 1 and name:
                    self.wanted_dims.setdefault(*symbols, name)

    def dim(self, symbol):
        if symbol not in self.of_inputs:
            raise Unsupported("an extent or a number follows from values of a tensor, which are known only at run time; "
                              "shapes follow from those of the inputs: use where, sums with a mask, or index_select")
        if symbol not in self.dims:
            self.dims[symbol] = self.names.new(self.wanted_dims.get(symbol, str(symbol)))
        low, high, times = self.range_of(symbol)
        name = self.dims[symbol]
        return low * times if low == high else f"{times}*{name}_{times}" if times > 1 else name

    def range_of(self, symbol):
        """The least and the largest value of a dim, and the number that the symbol is times it."""
        name, bounds = self.dims[symbol], self.ranges.get(symbol)
        low, high = 1, None
        if bounds is not None and bounds.lower.is_finite:
            low = max(low, int(bounds.lower))
        if bounds is not None and isinstance(bounds.upper, sympy.Integer):
            high = int(bounds.upper)
        if name not in self.given:
            return low, min(high or LARGEST_DIM, LARGEST_DIM), 1
        least, most, multiple = self.given[name]
        if least < low or (high and most > high):
            raise Unsupported(f"--dim={name}: the model's {name} is {low}" + (f" to {high}" if high else " or more"))
        return -(-least // multiple), most // multiple, multiple

    def dim_lines(self):
        unknown = set(self.given) - set(self.dims.values())
        if unknown:
            raise Unsupported(f"--dim={min(unknown)}: the model has no dim of this name" +
                              (f", but {', '.join(self.dims.values())}" if self.dims else ""))
        for symbol, name in self.dims.items():
            low, high, times = self.range_of(symbol)
            if low < high:
                yield f"dim {name}{f'_{times}' if times > 1 else ''} in {low}..{high}"

    def extent(self, size):
        """A number, or the text of an expression over dims."""
        if isinstance(size, int):
            return size
        expr = size.node.expr if hasattr(size, "node") else size
        if expr.is_Integer:
            return int(expr)
        if expr.is_Number:
            raise Unsupported(f"the extent {expr} is no integer")
        if expr.is_Symbol:
            return self.dim(expr)
        if type(expr).__name__ == "TruncToInt":
            return self.scaled_extent(expr)
        parts = [self.extent(arg) for arg in expr.args]
        joins = {"Add": " + ", "Mul": "*", "FloorDiv": " / ", "CleanDiv": " / ", "Mod": " % ", "PythonMod": " % "}
        join = joins.get(type(expr).__name__)
        if not join or not all(isinstance(p, (int, str)) for p in parts):
            raise Unsupported(f"the extent {expr} has no spelling among + - * / % of dims")
        return "(" + join.join(map(str, parts)) + ")"

    def scaled_extent(self, expr):
        """An extent times a fraction, rounded down. Only binary fractions are exact, as PyTorch's float product is not."""
        factors = sympy.Mul.make_args(expr.args[0])
        numbers = [f for f in factors if f.is_Number]
        floats = [f for f in factors if type(f).__name__ == "ToFloat"]
        above, below = float(numbers[0]).as_integer_ratio() if len(numbers) == 1 else (0, 1)
        if len(factors) != 2 or len(floats) != 1 or above <= 0 or below > 64:
            raise Unsupported(f"the extent {expr} is not a dim times a multiple of 1/64; give the size in place of the factor")
        return f"({above}*{self.extent(floats[0].args[0])} / {below})"

    # ---- values ----

    def describe(self, text, fake):
        if fake.dtype not in DTYPES:
            raise Unsupported(f"the language has no dtype {fake.dtype}")
        return Value(text, [self.extent(size) for size in fake.shape], DTYPES[fake.dtype], fake.stride())

    def argument(self, arg):
        """What a row of the table sees: a Value for a tensor, an extent for a SymInt, words for dtypes."""
        if isinstance(arg, torch.fx.Node):
            fake = arg.meta.get("val")
            if arg in self.values:
                return self.values[arg]
            if isinstance(fake, (torch.SymFloat, torch.SymBool)):
                raise Unsupported(f"{arg} is a number that Python computes at run time; compute it with tensors")
            return self.extent(fake) if isinstance(fake, torch.SymInt) else fake
        if isinstance(arg, (list, tuple)):
            return [self.argument(item) for item in arg]
        return DTYPES.get(arg, arg) if isinstance(arg, torch.dtype) else arg

    def type(self, value):
        return value.dtype + (f"[{', '.join(map(str, value.shape))}]" if value.shape else "")

    def bind(self, wanted, text, fake):
        value = self.describe(self.names.new(wanted), fake)
        self.lines.append(f"{value} = {text}")
        return value

    # ---- the graph ----

    def placeholder(self, node, spec, seen):
        is_input = spec.kind is InputKind.USER_INPUT
        if not isinstance(spec.arg, TensorArgument) or not (is_input or node.users):
            return
        if is_input:
            value = self.describe(self.names.new(node.name), node.meta["val"])
            self.inputs.append(value)
        else:
            tensor = self.exported.state_dict.get(spec.target)
            tensor = self.exported.constants[spec.target] if tensor is None else tensor
            where = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
            value = seen.get(where) if tensor.numel() else None
            if value is None:
                value = seen[where] = self.describe(self.names.new(spec.target), tensor)
                self.weights[spec.target] = tensor.detach().clone().contiguous()
                self.params.append((value, spec.target))
        self.values[node] = value

    def branches(self, pred, if_true, if_false, operands=()):
        """Both branches of torch.cond, of which `pred` picks: they compute values and have no effects."""
        results = []
        for branch in (if_true, if_false):
            graph = getattr(branch.graph.owning_module, branch.target).graph
            given = iter(operands)
            for node in graph.nodes:
                if node.op == "placeholder":
                    self.values[node] = self.argument(next(given))
                elif node.op == "call_function":
                    self.call(node)
                elif node.op == "output":
                    results.append([self.argument(arg) for arg in node.args[0]])
        picks = self.argument(pred)
        if not isinstance(picks, Value):
            raise Unsupported("the condition of torch.cond must be a tensor")
        picks = f"reshape({picks}, [])" if picks.rank else str(picks)
        return [f"where({picks}, {a}, {b})" for a, b in zip(*results)]

    def many(self, node, texts):
        """Binds the results of a node that are used."""
        used = {user.args[1] for user in node.users if user.target is operator.getitem}
        self.values[node] = [self.bind(f"{node.name}_{i}", text() if callable(text) else text, node.meta["val"][i])
                             if text and i in used else None for i, text in enumerate(texts)]

    def call(self, node):
        if node.target is torch.ops.aten._local_scalar_dense.default:
            given = self.argument(node.args[0])
            self.values[node] = Item(f"reshape({given}, [])" if given.rank else str(given), [], given.dtype)
            return
        if isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool, torch.SymFloat)) or not node.users:
            return
        if node.target is operator.getitem:
            value = self.values[node.args[0]][node.args[1]]
            if value is None:
                raise Unsupported(f"result {node.args[1]} of {node.args[0].target} (node {node.args[0]}) has no spelling")
            self.values[node] = value
            return
        op = str(node.target).removeprefix("aten.")
        if op.split(".")[0] in CHECKS:
            return
        if op == "cond":
            self.many(node, self.branches(*node.args))
            return
        if op not in OPS:
            raise Unsupported(f"op {node.target} (node {node}): {why_not(op)}")
        fake = node.meta["val"]
        many = isinstance(fake, (list, tuple))
        try:
            out = [None if f is None else self.describe("", f) for f in fake] if many else self.describe("", fake)
            kwargs = {k: self.argument(v) for k, v in node.kwargs.items()}
            result = OPS[op](out, *self.argument(node.args), **kwargs)
        except Unsupported as why:
            raise Unsupported(f"op {node.target} (node {node}): {why}") from None
        except (TypeError, ValueError, AttributeError, LookupError) as why:
            raise Unsupported(f"op {node.target} (node {node}) has no spelling with these arguments: {why}") from None
        self.ops.setdefault(op, result if not many else result[0])
        if many:
            self.many(node, result)
        else:
            self.values[node] = self.bind(node.name, result, fake)

    def outputs(self):
        taken, outputs = {str(v) for v in self.inputs} | {str(v) for v, _ in self.params}, []
        nodes = {n.name: n for n in self.exported.graph.nodes}
        for spec in self.exported.graph_signature.output_specs:
            if spec.kind is not OutputKind.USER_OUTPUT:
                raise Unsupported(f"the model changes {spec.target} while it runs; call eval(), or return the new value")
            if not isinstance(spec.arg, TensorArgument):
                continue
            node = nodes[spec.arg.name]
            value = self.values[node]
            if str(value) in taken:
                value = self.bind("output", str(value), node.meta["val"])
            taken.add(str(value))
            outputs.append(value)
        return outputs

    def translate(self):
        seen = {}
        specs = iter(self.exported.graph_signature.input_specs)
        for node in self.exported.graph.nodes:
            if node.op == "placeholder":
                self.placeholder(node, next(specs), seen)
            elif node.op == "call_function":
                self.call(node)
        outputs = self.outputs()
        declare = lambda values: ", ".join(f"{v}: {self.type(v)}" for v in values)
        params = [f'param {v}: {self.type(v)} = "{key}"' for v, key in self.params]
        body = "".join(f"  {line}\n" for line in params + self.lines)
        dims = "".join(line + "\n" for line in self.dim_lines())
        defs = "".join(text + "\n" for name, text in DEFS.items() if f"{name}(" in body)
        graph = f"graph {self.names.new(self.name)}({declare(self.inputs)}) -> ({declare(outputs)}) {{\n{body}}}\n"
        source = dims + ("\n" if dims else "") + defs + graph
        return Program(source, self.weights, [str(v) for v in self.inputs], [str(v) for v in outputs],
                       self.ops)


def tensor_specs(spec):
    """The (axis, dim) pairs of each tensor of `dynamic_shapes`, in the order of the tensors."""
    if spec is None or isinstance(spec, dict) and all(isinstance(k, int) for k in spec):
        return [list((spec or {}).items())]
    if isinstance(spec, dict):
        spec = list(spec.values())
    if spec and all(s is None or isinstance(s, int) or hasattr(s, "__name__") for s in spec) and \
            any(hasattr(s, "__name__") for s in spec):
        return [list(enumerate(spec))]
    return [pairs for part in spec for pairs in tensor_specs(part)]


def decomposed(model, args, kwargs, dynamic_shapes):
    """The program of torch.export in ops of the table."""
    exported = torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
    for node in exported.graph.nodes:
        if node.target is torch.ops.aten.view.default:  # a decomposition before it may change the strides
            node.target = torch.ops.aten.reshape.default
    table = torch.export.default_decompositions()
    for op in [op for op in table if str(op).removeprefix("aten.") in OPS]:
        del table[op]  # the language has a word for it
    return exported.run_decompositions(table)


def ranges_of(texts):
    """The ranges of --dim, by the names of dims: NAME=224, NAME=64..1024 or NAME=64..1024:32."""
    given = {}
    for text in texts:
        found = re.fullmatch(r"([^=]+)=(\d+)(?:\.\.(\d+)(?::(\d+))?)?", text)
        least, most, multiple = (int(found[2]), int(found[3] or found[2]), int(found[4] or 1)) if found else (1, 0, 1)
        if least > most or multiple < 1 or not -(-least // multiple) <= most // multiple:
            raise Unsupported(f"--dim wants a number, or a range as H=64..1024 or H=64..1024:32, not {text}")
        given[found[1]] = least, most, multiple
    return given


def translate(model, args, kwargs=None, dynamic_shapes=None, name="model", ranges=None):
    if not isinstance(model, torch.nn.Module):
        raise Unsupported(f"the model must be a torch.nn.Module, and not {type(model).__name__}")
    if not isinstance(args, (list, tuple)):
        raise Unsupported("the example arguments must be a tuple, such as (x,)")
    try:
        with torch.no_grad():
            exported = decomposed(model, args, kwargs, dynamic_shapes)
    except Exception as why:
        lines = str(why).strip().splitlines() or [type(why).__name__]
        raise Unsupported("torch.export does not take the model in: " + "\n  ".join(lines[:8])) from why
    return Translator(exported, dynamic_shapes, name, ranges).translate()


def load(where):
    """What the function of `FILE.py:FUNCTION` returns. The file may import others beside it."""
    path, colon, function = where.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise Unsupported("name the file and a function in it, as in model.py:make")
    if not os.path.isfile(path):
        raise Unsupported(f"there is no file {path}")
    folder, file = os.path.split(os.path.abspath(path))
    name = file.removesuffix(".py")
    name = f"model_{name}" if name in sys.modules else name
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    make = getattr(module, function, None)
    if not callable(make):
        others = [k for k, v in vars(module).items() if isinstance(v, types.FunctionType) and v.__module__ == name][:8]
        raise Unsupported(f"{path} has no function {function}" + (f", but {', '.join(others)}" if others else ""))
    made = make()
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise Unsupported(f"{function}() must return (model, args) or (model, args, dynamic_shapes)")
    return made


def main():
    parser = argparse.ArgumentParser(prog="python -m fusec.torch", description="Translates a PyTorch model.")
    parser.add_argument("model", metavar="FILE.py:FUNCTION", help="returns (model, args[, dynamic_shapes])")
    parser.add_argument("-o", dest="out", required=True, metavar="MODEL.g")
    parser.add_argument("--dim", action="append", default=[], metavar="B=32",
                        help="the value of a dim, or its range: B=1..64, or B=8..64:8 for multiples of 8")
    options = parser.parse_args()
    try:
        model, args, *shapes = load(options.model)
        translate(model, args, dynamic_shapes=shapes[0] if shapes else None,
                  ranges=ranges_of(options.dim)).save(options.out)
    except (Unsupported, OSError) as why:
        sys.exit(f"{options.model}: error: {why}")


if __name__ == "__main__":
    main()
