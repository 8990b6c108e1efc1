"""Chains of row ops on the CPU: is the fused plan ever slower than one kernel per op?

    python3 bench/rows_cpu.py [FUSEC] [PROGRAMS] [SEED]

Random chains of one to six row ops with costly maps between them, rows of 16 to 65536 elements,
f32, bf16 and f64. Both plans take turns on one thread, each time in a process of its own, and the
least of each counts: what else the machine does only adds. What is slower by more than 2 % is
measured again, longer. Exit status 1 when some plan still is. Beside the times stands what the
compiler predicted.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

BOUND, ROUNDS, AGAIN = 1.02, 3, 9
ROWS = ["softmax({})", "layernorm({}, g, b)", "rmsnorm({}, g)", "log_softmax({})",
        "{0} - logsumexp({0}, keep=true)"]
MAPS = ["{}", "{}", "gelu({})", "tanh({})", "exp(-abs({}))", "silu({})", "pow(abs({}) + 0.5, 1.3)",
        "sin({}) * cos({})", "erf({})", "{} * 0.5 + 1.0"]
LENGTHS = [16, 33, 64, 100, 256, 768, 1000, 1024, 2048, 4096, 4099, 8192, 12000, 16384, 16385,
           32768, 65536]


def make(rng):
    dtype, length = rng.choice(["f32", "bf16", "f64"]), rng.choice(LENGTHS)
    rows = max(1, rng.choice([1 << 16, 1 << 18, 1 << 20]) // length)
    is_symbolic = rng.random() < 0.2
    n = "D" if is_symbolic else str(length)
    body, last = [], "x"
    for i in range(rng.randint(1, 6)):
        value = rng.choice(MAPS).replace("{}", last)
        if dtype == "bf16":
            for number in ("0.5", "1.3", "1.0"):
                value = value.replace(number, f"const({number}, bf16)")
        if dtype == "f64":
            for number in ("0.5", "1.3", "1.0"):
                value = value.replace(number, f"const({number}, f64)")
        op = rng.choice(ROWS)
        body += [f"  m{i} = {value}", f"  v{i} = " + op.format(f"m{i}")]
        last = f"v{i}"
    body.append(f"  y = {last} + x")
    inputs = [f"x: {dtype}[{rows}, {n}]"]
    for name in "gb":
        if any(f", {name}" in line for line in body):
            inputs.append(f"{name}: {dtype}[{n}]")
    text = "dim D in 1..1048576\n" if is_symbolic else ""
    text += f"graph rows({', '.join(inputs)}) -> (y: {dtype}[{rows}, {n}]) {{\n"
    return (text + "\n".join(body) + "\n}\n", [f"--dim=D={length}"] if is_symbolic else [],
            f"{dtype} {rows} x {n}{f' = {length}' if is_symbolic else ''}")


def bench(fusec, path, more):
    """Launches and least microseconds of a run."""
    out = subprocess.run([fusec, "bench", path, "--device=cpu", "--threads=1", "--json",
                          "--runs=15"] + more, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{path}: {out.stderr}")
    report = json.loads(out.stdout)
    return report["launches"], report["min_us"]


def both(fusec, path, dims, rounds, best=(1e30, 1e30)):
    least, launches = list(best), [0, 0]
    for turn in range(rounds):
        for i in (0, 1) if turn % 2 else (1, 0):
            launches[i], us = bench(fusec, path, dims + (["--no-fuse"] if i else []))
            least[i] = min(least[i], us)
    return least, launches


def predicted(fusec, path, dims):
    out = subprocess.run([fusec, path, "--explain", "--json", "--target=cpu-native"] + dims,
                         capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["graphs"][0]["totals"]


def main(fusec="build/fusec", n=60, seed=1):
    rng, slow, ratios = random.Random(seed), [], []
    print("| seed | program | ops | launches unfused | fused | us unfused | us fused | "
          "fused / unfused | predicted |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for i in range(n):
            text, dims, name = make(rng)
            path = os.path.join(folder, f"rows{i}.g")
            with open(path, "w") as file:
                file.write(text)
            least, launches = both(fusec, path, dims, ROUNDS)
            if least[0] > BOUND * least[1]:
                least, launches = both(fusec, path, dims, AGAIN, least)
            ledger = predicted(fusec, path, dims)
            expected = ledger["us"] / ledger["unfused_us"]
            ratio = least[0] / least[1]
            ratios.append(ratio)
            ops = ", ".join(line.split(" = ")[1] for line in text.split("\n") if " = " in line)
            print(f"| {i} | {name} | {ops} | {launches[1]} | {launches[0]} | {least[1]:.0f} | "
                  f"{least[0]:.0f} | {ratio:.3f} | {expected:.3f} |", flush=True)
            if ratio > BOUND:
                slow.append(i)
    print(f"{n} programs, {len(slow)} slower by more than 2 %: "
          f"{', '.join(map(str, slow)) or 'none'}; worst {max(ratios):.3f}")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2], *map(int, sys.argv[2:])))
