"""Runs the models that ship with the package `onnx` through `fusec run` on the CPU: nine networks of image
classification, and small models that PyTorch exported.

network_tests.py FUSEC [--page FILE]: prints a line per model that does not pass, and the counts; --page writes the
tables. Inputs, outputs and tolerances are those of the package's own runner.
"""
import argparse
import collections
import glob
import os
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

import node_tests

DATA = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")


class Network:
    rtol, atol = 1e-3, 1e-7

    def __init__(self, name, model, data_sets):
        self.name, self.model, self.data_sets = name, model, data_sets


def load_array(path):
    tensor = onnx.TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return numpy_helper.to_array(tensor)


def ramp(value):
    """The runner's input of a network: numbers from 0 to 1."""
    shape = tuple(dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim)
    n = np.prod(shape)
    return (np.arange(n).reshape(shape) / n).astype(np.float32)


def networks():
    for path in sorted(glob.glob(f"{DATA}/light/*.onnx")):
        model = onnx.load(path)
        given = {tensor.name for tensor in model.graph.initializer}
        inputs = [ramp(value) for value in model.graph.input if value.name not in given]
        wanted = load_array(path.replace(".onnx", "_output_0.pb"))
        yield Network(os.path.basename(path)[len("light_"):-len(".onnx")], model, [(inputs, [wanted])])


def exported():
    for folder in sorted(glob.glob(f"{DATA}/pytorch-*/*") + glob.glob(f"{DATA}/simple/*")):
        model = onnx.load(f"{folder}/model.onnx")
        sets = []
        for data in sorted(glob.glob(f"{folder}/test_data_set_*")):
            if not glob.glob(f"{data}/*.pb"):
                continue
            inputs = [f"{data}/input_{i}.pb" for i in range(len(glob.glob(f"{data}/input_*.pb")))]
            outputs = [f"{data}/output_{i}.pb" for i in range(len(glob.glob(f"{data}/output_*.pb")))]
            sets.append((inputs, outputs))
        yield Network(os.path.basename(folder), model, sets)


def run(fusec, network):
    why = node_tests.excluded(network)
    if why:
        return "excluded", why
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(network.model, f"{folder}/model.onnx")
        for files in network.data_sets:
            inputs, outputs = [[load_array(f) if isinstance(f, str) else f for f in part] for part in files]
            result = node_tests.run_set(fusec, network, folder, inputs, outputs)
            if result[0] != "pass":
                return result
    return "pass", ""


def run_all(fusec, cases, counts):
    for network in cases:
        began = time.monotonic()
        result, why = run(fusec, network)
        counts[result] += 1
        if result in ("fail", "unsupported"):
            print(f"{result}: {network.name}: {why}")
        yield network.name, len(network.model.graph.node), result, time.monotonic() - began


def print_counts(name, counts):
    print(f"{name}: " + ", ".join(f"{counts[kind]} {kind}" for kind in ("pass", "fail", "unsupported", "excluded")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--page")
    options = parser.parse_args()
    of_networks, of_exported = collections.Counter(), collections.Counter()
    rows = list(run_all(options.fusec, networks(), of_networks))
    small = list(run_all(options.fusec, exported(), of_exported))
    print_counts("networks", of_networks)
    print_counts("exported models", of_exported)
    if options.page:
        with open(options.page, "w") as page:
            page.write("# Networks of the package onnx\n\n`make onnx-networks` writes this page. It runs the models "
                       f"that ship with the package `onnx` {onnx.__version__} on the CPU, with the tolerances of its "
                       "runner, 1e-3 relative.\n\n| network | nodes | result |\n|---|---|---|\n")
            page.write("".join(f"| {name} | {n} | {result} |\n" for name, n, result, _ in rows))
            page.write(f"\nOf {sum(of_exported.values())} small models, most of which PyTorch exported, "
                       f"{of_exported['pass']} pass, {of_exported['fail']} fail, {of_exported['unsupported']} are "
                       f"not supported, and {of_exported['excluded']} are of strings or sequences.\n\n")
            page.write("Not supported: " + ", ".join(f"`{name}`" for name, _, result, _ in small
                                                     if result == "unsupported") + ".\n")
    for name, n, result, seconds in rows:
        print(f"{name}: {n} nodes, {result}, {seconds:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
