"""Runs the official backend node tests of ONNX through `fusec run` on the CPU.

node_tests.py FUSEC [--page FILE] [--store FILE] [--only PART]: prints a line per case that does not pass, and the
counts; --page writes the table, --store the smallest cases that pass, of each op, for test_nodes. The cases, their data and their tolerances are those of the package `onnx`, which generates them.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test.case import node as node_cases

from wire import field

FAR = {"STRING", "COMPLEX64", "COMPLEX128", "UINT4", "INT4", "FLOAT4E2M1", "UINT2", "INT2"}
N_STORED, MAX_STORED_BYTES = 150, 16384
BY_BITS = {ml_dtypes.bfloat16: np.uint16, ml_dtypes.float8_e4m3fn: np.uint8, ml_dtypes.float8_e5m2: np.uint8,
           ml_dtypes.float8_e4m3fnuz: np.uint8, ml_dtypes.float8_e5m2fnuz: np.uint8}


def collect():
    warnings.simplefilter("ignore")
    cases = {case.name: case for case in node_cases.collect_testcases(None)}
    return [cases[name] for name in sorted(cases)]


def excluded(case):
    """Why a case is no case for tensors of numbers; None if it is one."""
    graph = case.model.graph
    for value in list(graph.input) + list(graph.output):
        if value.type.WhichOneof("value") != "tensor_type":
            return "sequence or optional"
        name = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
        if name in FAR:
            return "string" if name == "STRING" else "complex" if "COMPLEX" in name else "4-bit"
    return None


def identifier(name):
    return re.sub(r"[^A-Za-z0-9_]", "_", ("_" if name[:1].isdigit() else "") + name)


def plain(array):
    return onnx.numpy_helper.to_array(array) if isinstance(array, onnx.TensorProto) else np.asarray(array)


def save(path, array):
    array = plain(array)
    for dtype, bits in BY_BITS.items():
        if array.dtype == np.dtype(dtype):
            array = array.view(bits)
    np.save(path, np.ascontiguousarray(array).reshape(array.shape))


def compare(case, path, wanted):
    wanted = plain(wanted)
    got = np.load(path)
    for dtype, bits in BY_BITS.items():
        if wanted.dtype == np.dtype(dtype) and got.dtype != np.dtype(dtype):
            got = got.view(dtype) if got.dtype.itemsize == wanted.dtype.itemsize else got
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    if got.dtype != wanted.dtype:
        return f"dtype {got.dtype}, not {wanted.dtype}"
    if got.dtype.kind not in "biufV" or wanted.dtype in [np.dtype(d) for d in BY_BITS]:
        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    try:
        np.testing.assert_allclose(got, wanted, rtol=case.rtol, atol=case.atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:160]
    return None


def run_set(fusec, case, folder, inputs, outputs, constants=()):
    """Inputs are given at run time, but for those that the import asks for as constants."""
    command = [fusec, "run", f"{folder}/model.onnx", "--device=cpu"]
    weights = {tensor.name for tensor in case.model.graph.initializer}
    for value, array in zip([value for value in case.model.graph.input if value.name not in weights], inputs):
        name = identifier(value.name)
        path = f"{folder}/{name}.npy"
        save(path, array)
        command.append(f"--{'constant' if name in constants else 'input'}={name}=@{path}")
    for value in case.model.graph.output:
        command.append(f"--output={identifier(value.name)}=@{folder}/out_{identifier(value.name)}.npy")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    asked = set(re.findall(r"--constant=(\w+)=VALUES", done.stderr)) - set(constants)
    if done.returncode != 0 and asked:
        return run_set(fusec, case, folder, inputs, outputs, asked.union(constants))
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:100])
        kind = "unsupported" if done.returncode == 1 else "fail"
        return kind, first.replace(folder + "/", "")
    for value, wanted in zip(case.model.graph.output, outputs):
        wrong = compare(case, f"{folder}/out_{identifier(value.name)}.npy", wanted)
        if wrong:
            return "fail", wrong
    return "pass", constants


def run_case(job):
    fusec, case = job
    why = excluded(case)
    if why:
        return case.name, "excluded", why
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(case.model.SerializeToString())
        for inputs, outputs in case.data_sets:
            try:
                result = run_set(fusec, case, folder, inputs, outputs)
            except Exception as error:
                result = "fail", f"{type(error).__name__}: {error}"[:160]
            if result[0] != "pass":
                return (case.name,) + result
    return (case.name,) + result


def named_array(number, folder, name, array):
    save(f"{folder}/array.npy", array)
    with open(f"{folder}/array.npy", "rb") as file:
        return field(number, field(1, name.encode()) + field(2, file.read()))


def record(case, constants):
    """A case with its first data set: 1 name, 2 model, 3 input, 4 constant, 5 output, 6 and 7 tolerances."""
    inputs, outputs = case.data_sets[0]
    data = field(1, case.name.encode()) + field(2, case.model.SerializeToString())
    with tempfile.TemporaryDirectory() as folder:
        for value, array in zip(case.model.graph.input, inputs):
            name = identifier(value.name)
            data += named_array(4 if name in constants else 3, folder, name, array)
        for value, array in zip(case.model.graph.output, outputs):
            data += named_array(5, folder, identifier(value.name), array)
    return field(1, data + field(6, float(case.rtol)) + field(7, float(case.atol)))


def write_store(path, cases, results):
    """Of each op the smallest case, then of each the next, until there are enough."""
    by_op = collections.defaultdict(list)
    for case, (_, result, constants) in zip(cases, results):
        if result == "pass":
            op = next((node.op_type for node in case.model.graph.node if node.op_type != "Constant"), "")
            by_op[op, "expanded" in case.name].append((len(record(case, constants)), case.name))
    order = sorted((rank, size, name) for group in by_op.values() for rank, (size, name) in enumerate(sorted(group)))
    chosen = {name for _, _, name in [row for row in order if row[1] <= MAX_STORED_BYTES][:N_STORED]}
    with open(path, "wb") as file:
        for case, (_, _, constants) in zip(cases, results):
            if case.name in chosen:
                file.write(record(case, constants))


def need(message):
    """What an unsupported case needs, from the importer's message."""
    dtype = re.search(r"(?:is|for|makes) (\w+), which|no dtype for (\w+)", message)
    if dtype:
        return f"a dtype for {dtype[1] or dtype[2]}"
    op = re.search(r"\(([\w.]+), opset \d+\): the op is not", message)
    if op:
        return f"the op {op[1]}"
    if "random" in message:
        return "random numbers"
    return "an older opset" if "opset" in message else "more"


def write_page(path, results, counts):
    tested = sum(counts.values()) - counts["excluded"]
    with open(path, "w") as page:
        page.write("# ONNX's backend node tests\n\n")
        page.write("`make onnx-node-tests` writes this page. It runs the official node tests of the package `onnx` "
                   f"{onnx.__version__} on the CPU, with the tolerances of the suite. Excluded are cases whose inputs "
                   "or outputs are strings, sequences, optionals, complex or 4-bit numbers. Inputs that the import "
                   "asks for as constants are given as such; all others are given at run time.\n\n")
        page.write("| result | cases |\n|---|---|\n")
        for kind in ("pass", "fail", "unsupported", "excluded"):
            page.write(f"| {kind} | {counts[kind]} |\n")
        n_given = sum(result == "pass" and bool(given) for _, result, given in results)
        page.write(f"\nOf the cases that pass, {n_given} get inputs as constants. ")
        page.write(f"Of {tested} cases that are not excluded, {100 * counts['pass'] / max(tested, 1):.1f} % pass.\n")
        page.write("\nThe suite's attention in bf16 and f16 rounds every step to that dtype, sums too, and allows 1/1000; "
                   "ours rounds less often. Its inverse DFT expects 2e-7 where the exact value is 0.\n")
        needs = collections.Counter(need(why) for _, result, why in results if result == "unsupported")
        page.write("\n| what unsupported cases need | cases |\n|---|---|\n")
        page.write("".join(f"| {what} | {n} |\n" for what, n in sorted(needs.items(), key=lambda row: (-row[1], row[0]))))
        for kind in ("fail", "unsupported", "excluded", "pass"):
            names = [name for name, result, _ in results if result == kind]
            page.write(f"\n## {kind}\n\n" + ", ".join(f"`{name}`" for name in names) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--page")
    parser.add_argument("--store")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    cases = [case for case in collect() if options.only in case.name]
    jobs = [(os.path.abspath(options.fusec), case) for case in cases]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run_case, jobs))
    counts = collections.Counter(result for _, result, _ in results)
    for name, result, why in results:
        if result in ("fail", "unsupported"):
            print(f"{result}: {name}: {why}")
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("pass", "fail", "unsupported", "excluded")))
    if options.store:
        write_store(options.store, cases, results)
    if options.page:
        write_page(options.page, results, counts)


if __name__ == "__main__":
    sys.exit(main())
