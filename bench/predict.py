"""Predicted beside measured: random memory-bound graphs that the cost model was not fitted to.

    python3 bench/predict.py make FOLDER [N [SEED]]    here: sources, artifacts, predictions
    python3 bench/predict.py products FOLDER           the same for products of large tensors, which
                                                       are no random ones
    python3 predict.py measure FOLDER LIB              on the GPU machine, with PyTorch; LIB holds
                                                       libfusec.so and libfusert.so: times.json
    ncu --metrics dram__bytes_read.sum,dram__bytes_write.sum --page raw --csv --print-units base \
      --cache-control none --clock-control none -k 'regex:^g[0-9]+_' \
      python3 predict.py run FOLDER LIB > FOLDER/counters.csv      there: bytes of DRAM
    python3 bench/predict.py report FOLDER             here: the table of what FOLDER holds

The parts on the GPU machine need bench/peers/fusert.py beside them. The largest tensor of each graph
has 128 MiB and more. Times are medians over three sets of buffers taken in turn, each run between
two events; bytes are those of the last of several runs over the same sets. `make` again after a
change of the model keeps what was measured, as long as the artifacts stay the same.
"""

import csv
import hashlib
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys

TARGET = "sm_90a"
BYTES = {"f32": 4, "bf16": 2}
UNARY = ["relu({})", "-{}", "abs({})", "{} * 0.5", "{} + 1.0", "exp({})", "sigmoid({})",
         "tanh({})", "sqrt(abs({}))"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "maximum({}, {})"]
SETS, RUNS = 3, 15
COUNTED_RUNS = 4  # under ncu: the last has to write back what the one before it left in the cache


class Maker:
    """One graph over [rows, columns], and reductions and views of it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.dtype = self.rng.choice(["f32", "bf16"])
        self.columns = self.rng.choice([256, 512, 1000, 1024, 2048, 3072, 4096, 8192])
        elems = self.rng.choice([1.0, 1.3, 1.7]) * 128 * 2**20 / BYTES[self.dtype]
        self.rows = int(elems / self.columns) // 8 * 8 + 8
        self.inputs, self.body, self.values = [], [], []
        for _ in range(self.rng.randint(1, 3)):
            self.values.append(self.input([self.rows, self.columns]))

    def input(self, shape, dtype=None):
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, dtype or self.dtype, shape))
        return name

    def add(self, text):
        self.body.append(f"v{len(self.body)} = {text}")
        return f"v{len(self.body) - 1}"

    def elementwise(self):
        value = self.rng.choice(self.values)
        form = self.rng.choice(["unary", "binary", "binary", "row", "column"])
        if form == "unary":
            return self.add(self.rng.choice(UNARY).format(value))
        if form == "binary":
            return self.add(self.rng.choice(BINARY).format(value, self.rng.choice(self.values)))
        shape = [self.columns] if form == "row" else [self.rows, 1]
        return self.add(self.rng.choice(BINARY).format(value, self.input(shape)))

    def last(self, value):
        """The output and its shape."""
        kind = self.rng.choice(["map", "map", "slice", "stride", "concat", "softmax", "layernorm",
                                "rmsnorm", "rowsum", "rowmax", "columns", "all", "gather"])
        rows, columns = self.rows, self.columns
        if kind == "slice":
            return f"{value}[{rows // 4}:{3 * rows // 4}]", [3 * rows // 4 - rows // 4, columns]
        if kind == "stride":
            return f"{value}[::2]", [(rows + 1) // 2, columns]
        if kind == "concat":
            other = self.input([rows, 128])
            return f"concat([{value}, {other}], axis=1)", [rows, columns + 128]
        if kind == "gather":
            index = self.input([rows // 2], "i32")
            return f"gather({value}, {index}, axis=0)", [rows // 2, columns]
        if kind in ("softmax", "layernorm", "rmsnorm"):
            more = ["", f", {self.input([columns])}", f", {self.input([columns])}"]
            tail = {"softmax": ", axis=1", "layernorm": more[1] + more[2], "rmsnorm": more[1]}[kind]
            return f"{kind}({value}{tail})", [rows, columns]
        if kind in ("rowsum", "rowmax"):
            return f"{kind[3:]}({value}, axis=1)", [rows]
        if kind == "columns":
            return f"sum({value}, axis=0)", [columns]
        if kind == "all":
            return f"sum({value})", []
        return f"relu({value})", [rows, columns]

    def finish(self):
        """The body whole, the inputs that it has use for, the output's shape."""
        for _ in range(self.rng.randint(0, 5)):
            self.values.append(self.elementwise())
        text, self.shape = self.last(self.values[-1])
        used = "\n".join(self.body) + text
        for value in self.values[:-1]:  # whatever is not used yet
            if f"{value} " not in used.replace(",", " ").replace(")", " ").replace("[", " ") + " ":
                text = text.replace(self.values[-1], f"({self.values[-1]} + {value})", 1)
        self.inputs = [i for i in self.inputs
                       if i[0] in text or any(i[0] in line for line in self.body)]
        self.body.append(f"y = {text}")


def product(name, m, k, n, dtype="bf16", epilogue="relu(x @ w + b)", more=()):
    inputs = [("x", dtype, [m, k]), ("w", dtype, [k, n]), ("b", dtype, [n]), *more]
    return name, inputs, [f"y = {epilogue}"], dtype, [m, n]


ROWS, WIDTH, HIDDEN = 16384, 4096, 16384  # 128 MiB and more of bf16 each
PRODUCTS = [
    product("bias, relu", ROWS, WIDTH, HIDDEN),
    product("few columns", ROWS, HIDDEN, WIDTH),
    product("cube", ROWS, ROWS, ROWS),
    product("right factor [N, K]", ROWS, WIDTH, HIDDEN,
            epilogue="relu(x @ transpose(v, perm=[1, 0]) + b)",
            more=[("v", "bf16", [HIDDEN, WIDTH])]),
    product("gelu, residual", ROWS, WIDTH, HIDDEN, epilogue="gelu(x @ w + b) + r",
            more=[("r", "bf16", [ROWS, HIDDEN])]),
    product("f32", 8192, 8192, 8192, "f32"),
    product("16 rows", 16, ROWS, HIDDEN),
    product("one row", 1, ROWS, HIDDEN),
    product("rows behind", 1 << 21, 64, 64, epilogue="softmax(x @ w + b, axis=1)"),
    ("gated pair", [("x", "bf16", [ROWS, WIDTH]), ("w", "bf16", [WIDTH, HIDDEN]),
                    ("v", "bf16", [WIDTH, HIDDEN])], ["y = silu(x @ w) * (x @ v)"],
     "bf16", [ROWS, HIDDEN]),
    ("mlp", [("x", "bf16", [ROWS, WIDTH]), ("w", "bf16", [WIDTH, HIDDEN]),
             ("v", "bf16", [HIDDEN, WIDTH])], ["h = gelu(x @ w)", "y = x + h @ v"],
     "bf16", [ROWS, WIDTH]),
]


def source_of(name, inputs, body, dtype, shape):
    declared = ", ".join(f"{n}: {d}[{', '.join(map(str, s))}]" for n, d, s in inputs)
    lines = "".join(f"  {line}\n" for line in body)
    extents = f"[{', '.join(map(str, shape))}]" if shape else ""
    return f"graph {name}({declared}) -> (y: {dtype}{extents}) {{\n{lines}}}\n"


def of_seeds(first):
    """Random graphs without end: label, inputs, body, dtype and shape of the output."""
    for seed in itertools.count(first):
        maker = Maker(seed)
        maker.finish()
        yield seed, maker.inputs, maker.body, maker.dtype, maker.shape


def of_products():
    for label, inputs, body, dtype, shape in PRODUCTS:
        used = " ".join(body)
        yield label, [i for i in inputs if re.search(rf"\b{i[0]}\b", used)], body, dtype, shape


def predict(path, row):
    """Compiles; adds to the row what is predicted. False where it does not compile."""
    command = ["build/fusec", path + ".g", f"--target={TARGET}"]
    made = subprocess.run(command + ["-o", path + ".ptx"], capture_output=True, text=True)
    if made.returncode:
        print(f"{row['seed']}: {made.stderr.splitlines()[0]}")
        return False
    told = subprocess.run(command + ["--explain", "--json"], capture_output=True, text=True,
                          check=True)
    graph = json.loads(told.stdout)["graphs"][0]
    slow = max(graph["kernels"], key=lambda k: k["us"])
    with open(path + ".ptx", "rb") as file:
        row["sha256"] = hashlib.sha256(file.read()).hexdigest()
    row.update({key: graph["totals"][key] for key in ("us", "bytes", "launches")})
    row["is_memory_bound"] = slow["memory_us"] >= max(slow["arithmetic_us"], slow["tensor_us"])
    return True


def make(folder, graphs, n):
    os.makedirs(folder, exist_ok=True)
    table = []
    for label, inputs, body, dtype, shape in graphs:
        row = {"name": f"g{len(table)}", "seed": label, "inputs": inputs, "output": [dtype, shape]}
        path = os.path.join(folder, row["name"])
        with open(path + ".g", "w") as file:
            file.write(source_of(row["name"], inputs, body, dtype, shape))
        if predict(path, row):
            table.append(row)
        if len(table) == n:
            break
    with open(os.path.join(folder, "table.json"), "w") as file:
        json.dump(table, file, indent=1)


def read_table(folder):
    with open(os.path.join(folder, "table.json")) as file:
        return json.load(file)


def bound_sets(folder, row, libraries, torch):
    """The row's program, bound to several sets of buffers."""
    dtypes = {"f32": torch.float32, "bf16": torch.bfloat16, "i32": torch.int32}
    with open(os.path.join(folder, row["name"] + ".ptx"), "rb") as file:
        program = libraries.program(file.read())
    sets = []
    for _ in range(SETS):
        tensors = {}
        for name, dtype, shape in row["inputs"]:
            made = torch.empty(shape, dtype=dtypes[dtype], device="cuda")
            n_rows = max(s[0] for _, _, s in row["inputs"])
            tensors[name] = (made.random_(0, n_rows) if dtype == "i32" else made.normal_())
        dtype, shape = row["output"]
        tensors["y"] = torch.empty(shape, dtype=dtypes[dtype], device="cuda")
        names = {n: d for n, d, _ in row["inputs"]} | {"y": dtype}
        bound = {n: (t.data_ptr(), names[n], list(t.shape)) for n, t in tensors.items()}
        sets.append((program.exec(bound), tensors))
    torch.cuda.synchronize()
    return sets


def measure_one(sets, torch):
    times, stream = [], torch.cuda.Stream()
    for run in range(RUNS + SETS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            torch.cuda._sleep(40000)  # the launches are queued before the first begins
            begin.record()
            sets[run % SETS][0].run(stream.cuda_stream)
            end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times[SETS:])


def measure(folder, lib):
    import torch
    import fusert
    libraries, times = fusert.Libraries(lib), {}
    for row in read_table(folder):
        times[row["sha256"]] = measure_one(bound_sets(folder, row, libraries, torch), torch)
        torch.cuda.empty_cache()
    with open(os.path.join(folder, "times.json"), "w") as file:
        json.dump(times, file, indent=1)


def run(folder, lib):
    """For ncu to look at."""
    import torch
    import fusert
    libraries, stream = fusert.Libraries(lib), torch.cuda.Stream()
    for row in read_table(folder):
        sets = bound_sets(folder, row, libraries, torch)
        for i in range(COUNTED_RUNS):
            sets[i % SETS][0].run(stream.cuda_stream)
        torch.cuda.synchronize()
        del sets
        torch.cuda.empty_cache()


def counted_bytes(folder):
    """Bytes of DRAM by graph, of its last run; none where nothing was counted."""
    path, runs = os.path.join(folder, "counters.csv"), {}
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        lines = [line for line in file if line.startswith('"')]
    for row in csv.DictReader(lines):
        if row["ID"]:  # the row of units has none
            counted = sum(float(row[f"dram__bytes_{way}.sum"].replace(",", ""))
                          for way in ("read", "write"))
            runs.setdefault(row["Kernel Name"].split("_")[0], []).append(counted)
    return {name: sum(counts[-(len(counts) // COUNTED_RUNS):]) for name, counts in runs.items()}


def ratio_text(predicted, measured):
    return f"{predicted / measured:.2f}" if measured else "-"


def tell(title, ratios, bounds):
    if ratios:
        within = [f"{sum(abs(r - 1) <= b for r in ratios)} within {100 * b:.0f} %" for b in bounds]
        print(f"{title}: of {len(ratios)}, {', '.join(within)}; "
              f"{min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}")


def report(folder):
    path, times = os.path.join(folder, "times.json"), {}
    if os.path.exists(path):
        with open(path) as file:
            times = json.load(file)
    counted, of_times, of_bytes = counted_bytes(folder), [], []
    print("| graph | launches | us predicted | measured | ratio | GB predicted | counted | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for row in read_table(folder):
        us, n_bytes = times.get(row["sha256"]), counted.get(row["name"])
        bound = "" if row["is_memory_bound"] else " (arithmetic)"
        print(f"| {row['seed']}{bound} | {row['launches']} | {row['us']:.1f} | "
              f"{f'{us:.1f}' if us else '-'} | {ratio_text(row['us'], us)} | "
              f"{row['bytes'] / 1e9:.3f} | {f'{n_bytes / 1e9:.3f}' if n_bytes else '-'} | "
              f"{ratio_text(row['bytes'], n_bytes)} |")
        if us and row["is_memory_bound"]:
            of_times.append(row["us"] / us)
        if n_bytes:
            of_bytes.append(row["bytes"] / n_bytes)
    tell("time, memory-bound", of_times, (0.25, 0.1))
    tell("bytes", of_bytes, (0.1, 0.05))


if __name__ == "__main__":
    on_device = {"measure": measure, "run": run}
    if len(sys.argv) > 2 and sys.argv[1] == "make":
        n, seed = [int(a) for a in sys.argv[3:]] + [50, 1][len(sys.argv) - 3:]
        make(sys.argv[2], of_seeds(seed), n)
    elif len(sys.argv) == 3 and sys.argv[1] == "products":
        make(sys.argv[2], of_products(), len(PRODUCTS))
    elif len(sys.argv) == 3 and sys.argv[1] == "report":
        report(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] in on_device:
        on_device[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(__doc__)
