"""What was measured, as JSON, as a table and as a roofline."""

import json
import math
import os

from cases import PEERS

# TFLOP/s of an H100 or H200 SXM, dense, by its datasheet.
SPEC = {"bf16": 989.0, "tf32": 494.0, "f32": 66.9}
MIN_STREAM_BYTES = 64 << 20  # a row counts as a stream from here on


def by_name(row, name):
    """A contender's entries with a time, fastest layout first: [(layout, entry)]."""
    found = [(key.partition("/")[2], entry) for key, entry in row["entries"].items()
             if key.partition("/")[0] == name and "us" in entry]
    return sorted(found, key=lambda pair: pair[1]["us"])


def best(row, names):
    """(name, layout, entry) of the fastest, or None."""
    found = [(name, *pair) for name in names for pair in by_name(row, name)[:1]]
    return min(found, key=lambda item: item[2]["us"], default=None)



def limits(result):
    """The machine's own: the best stream seen in this run (GB/s), by anyone, and TFLOP/s."""
    stream = max(result["ceilings"]["streams"].values())
    for row in result["rows"]:
        fastest = best(row, ("fusec",) + PEERS)
        if fastest and row["bytes"] >= MIN_STREAM_BYTES:
            stream = max(stream, row["bytes"] / fastest[2]["us"] / 1e3)
    products = result["ceilings"]["products"]
    return stream, {**products, "vector": products["f32"]}


def evaluate(result):
    """Adds to each row what follows from its times."""
    stream, products = limits(result)
    result["limits"] = {"stream_gb_per_s": stream, "tflop_per_s": products}
    for row in result["rows"]:
        memory_us = row["bytes"] / stream / 1e3
        product_us = row["flops"] / products[row["unit"]] / 1e6
        row["limit_us"] = max(memory_us, product_us)
        row["bound"] = "memory" if memory_us >= product_us else "arithmetic"
        ours, peer = best(row, ("fusec",)), best(row, PEERS)
        row["best_peer"] = peer and "/".join(p for p in peer[:2] if p)
        row["ratio"] = peer[2]["us"] / ours[2]["us"] if ours and peer else None
        row["share"] = row["limit_us"] / ours[2]["us"] if ours else None


def write(result, folder):
    evaluate(result)
    path = os.path.join(folder, "peers.json")
    with open(path + ".new", "w") as file:
        json.dump(result, file, indent=1)
    os.replace(path + ".new", path)


def finish(result, folder):
    write(result, folder)
    with open(os.path.join(folder, "roofline.svg"), "w") as file:
        file.write(roofline(result))


def status(result):
    # A row left out for want of time is missing, not failed.
    late = [why for why in result["missing"].values() if why == "no time was left"]
    failed = any(row["failures"] for row in result["rows"]) or \
        len(result["missing"]) > len(late)
    skipped = late or any(row["skipped"] for row in result["rows"])
    return 1 if failed else 3 if skipped else 0


# ---- the table ----

def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(row, name):
    found = by_name(row, name)
    if found:
        layout, entry = found[0]
        return number(entry["us"]) + (f" {layout}" if layout else "")
    keys = [key for key in row["failures"] if key.partition("/")[0] == name]
    late = [key for key in row["skipped"] if key.partition("/")[0] == name]
    return "FAILED" if keys else "no time" if late else "-"


def compile_cell(row, name):
    found = [entry["compile_ms"] for _, entry in by_name(row, name) if entry["compile_ms"]]
    return number(found[0]) if found else "-"


def fusec_compile_cell(row):
    found = by_name(row, "fusec")
    if not found:
        return "-"
    entry = found[0][1]
    return f"{number(entry['ptx_ms'])} + {number(entry['compile_ms'] - entry['ptx_ms'])}"


def rate(row):
    ours = best(row, ("fusec",))
    if not ours:
        return "-"
    us = ours[2]["us"]
    return f"{row['bytes'] / us / 1e3:.0f} GB/s" if row["bound"] == "memory" else \
        f"{row['flops'] / us / 1e6:.0f} TFLOP/s"


def row_cells(row):
    asked = {key.partition("/")[0] for key in [*row["entries"], *row["failures"], *row["skipped"]]}
    either = next((name for name in ("sdpa", "flex") if name in asked), "lt")
    return [row["name"], cell(row, "fusec"), cell(row, "fast"), cell(row, "eager"),
            cell(row, either),
            cell(row, "compile"), cell(row, "xla"),
            f"{row['ratio']:.2f}" if row["ratio"] else "-",
            f"{row['target']:.2f}" if row["target"] else "-", rate(row),
            f"{100 * row['share']:.0f} %" if row["share"] else "-",
            fusec_compile_cell(row), compile_cell(row, "compile"), compile_cell(row, "xla")]


HEAD = ["workload", "fusec", "fusec fast", "eager", "cuBLASLt / SDPA / flex", "torch.compile",
        "XLA", "best peer / ours", "wanted", "ours", "of limit", "fusec: PTX + load",
        "torch.compile", "XLA"]


NOISE = 0.98  # this much of a target is the target
FASTER_THAN_PEER, FASTER_THAN_TORCH = 2.0, 10.0  # in compiling, driver included


def shortfalls(row):
    """What a row has missed of its targets, in words."""
    if row["target"] and row["ratio"] and round(row["ratio"], 2) < round(NOISE * row["target"], 2):
        yield f"best peer / ours {row['ratio']:.2f}, wanted {row['target']:.2f}"
    if row["target_share"] and row["share"] and row["share"] < NOISE * row["target_share"]:
        yield f"{100 * row['share']:.0f} % of the limit, wanted {100 * row['target_share']:.0f} %"
    ours = by_name(row, "fusec")
    if not ours:
        return
    entry = ours[0][1]
    if entry["ptx_ms"] > row["target_ptx_ms"]:
        yield f"{entry['ptx_ms']:.0f} ms to PTX, wanted {row['target_ptx_ms']:.0f}"
    for names, factor in ((("compile", "xla"), FASTER_THAN_PEER),
                          (("compile",), FASTER_THAN_TORCH)):
        theirs = [e["compile_ms"] for name in names for _, e in by_name(row, name)]
        if theirs and entry["compile_ms"] * factor > min(theirs):
            yield (f"compiled {min(theirs) / entry['compile_ms']:.1f} times as fast as"
                   f" {' and '.join(names)}, wanted {factor:.0f}")


def notes(result):
    """What does not fit into the table, one line each."""
    for row in result["rows"]:
        missed = list(shortfalls(row))
        if missed:
            yield f"BELOW TARGET {row['name']}: {'; '.join(missed)}"
    for row in result["rows"]:
        for key, entry in row["entries"].items():
            for kernel in entry.get("kernels", ()):
                if kernel["local_bytes"]:
                    yield (f"SPILL {row['name']} {key}: kernel {kernel['label']} keeps"
                           f" {kernel['local_bytes']} bytes a thread in local memory")
            if "init_ms" in entry:
                yield (f"init {row['name']} {key}: {entry['init_ms']:.2f} ms once,"
                       f" {entry['init_bytes']} bytes kept")
            if entry.get("mode", "default") != "default":
                yield f"mode {row['name']} {key}: {entry['mode']}"
    for row in result["rows"]:
        for key, why in row["failures"].items():
            yield f"FAILED {row['name']} {key}: {why}"
        for key, why in row["refused"].items():
            yield f"REFUSED {row['name']} {key}: {why}"
        for key in row["skipped"]:
            yield f"NO TIME {row['name']} {key}"
    for name, why in result["absent"].items():
        yield f"ABSENT {name}: {why}"
    for name, why in result["missing"].items():
        yield f"MISSING {name}: {why}"


def table(result):
    stream, products = result["limits"]["stream_gb_per_s"], result["limits"]["tflop_per_s"]
    measured = ", ".join(f"{name} {rate_:.0f}"
                         for name, rate_ in result["ceilings"]["streams"].items())
    lines = [f"{result['card']}; {result['date']}; {result['versions']}",
             f"streams of PyTorch in GB/s: {measured}; best of this run {stream:.0f}",
             "cuBLAS in TFLOP/s: " + ", ".join(
                 f"{name} {extent} {number(products[name])} (datasheet {number(SPEC[name])})"
                 for name, extent in (("bf16", 8192), ("tf32", 8192), ("f32", 4096))),
             "Times in us; compile times in ms. kn and nk: how right operands lie.", "",
             "| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(row_cells(row)) + " |" for row in result["rows"]]
    lines += ["", *notes(result)]
    word = {0: "complete", 1: "FAILED", 3: "CUT SHORT by its time budget"}[status(result)]
    return "\n".join(lines + [f"run {word}, {result['seconds']:.0f} s"])


# ---- the roofline ----

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 1120, 600, 70, 300, 50
X_RANGE, Y_RANGE = (0.01, 20000.0), (0.001, 2000.0)  # FLOP per byte; TFLOP/s


def place(value, bounds, low, high):
    low_log, high_log = math.log10(bounds[0]), math.log10(bounds[1])
    part = (math.log10(min(max(value, bounds[0]), bounds[1])) - low_log) / (high_log - low_log)
    return low + part * (high - low)


def at(x, y):
    return (place(x, X_RANGE, LEFT, WIDTH - RIGHT), place(y, Y_RANGE, HEIGHT - BOTTOM, 20))


def svg_text(x, y, words, size=11, anchor="start", color="#333"):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
            f' fill="{color}">{words}</text>')


def axes():
    for exponent in range(-2, 5):
        x, _ = at(10.0 ** exponent, Y_RANGE[0])
        yield f'<path d="M{x:.1f} 20V{HEIGHT - BOTTOM}" stroke="#eee"/>'
        yield svg_text(x, HEIGHT - BOTTOM + 16, f"{10.0 ** exponent:g}", anchor="middle")
    for exponent in range(-3, 4):
        _, y = at(X_RANGE[0], 10.0 ** exponent)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#eee"/>'
        yield svg_text(LEFT - 6, y + 4, f"{10.0 ** exponent:g}", anchor="end")
    yield svg_text(WIDTH / 2, HEIGHT - 12, "FLOP per byte that has to move", 13, "middle")
    yield f'<g transform="rotate(-90 18 {HEIGHT / 2})">' + \
        svg_text(18, HEIGHT / 2, "TFLOP/s", 13, "middle") + "</g>"


def roof(stream, peak, words):
    """The line that rises with the memory and is cut by one unit's rate."""
    knee = peak * 1e12 / (stream * 1e9)
    points = [at(X_RANGE[0], X_RANGE[0] * stream / 1e3), at(knee, peak), at(X_RANGE[1], peak)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{line}" fill="none" stroke="#666" stroke-width="1.5"/>'
    yield svg_text(WIDTH - RIGHT - 4, points[2][1] - 5, words, anchor="end")


def marks(index, row):
    """Both times of a row, joined by a line, and its line of the legend."""
    intensity = row["flops"] / row["bytes"]
    ours, peer = best(row, ("fusec",)), best(row, PEERS)
    points = {who: at(intensity, row["flops"] / entry[2]["us"] / 1e6)
              for who, entry in (("ours", ours), ("peer", peer)) if entry}
    if len(points) == 2:
        (x, y), (_, y2) = points["ours"], points["peer"]
        yield f'<path d="M{x:.1f} {y:.1f}V{y2:.1f}" stroke="#bbb"/>'
    if peer:
        x, y = points["peer"]
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" stroke="#c60"/>'
    if ours:
        x, y = points["ours"]
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#06c"/>'
        yield svg_text(x + 5, y + 11, str(index), 9)
    ratio = f", {row['ratio']:.2f}" if row["ratio"] else ""
    yield svg_text(WIDTH - RIGHT + 14, 44 + 18 * index, f"{index}  {row['name']}{ratio}")


def roofline(result):
    stream, products = result["limits"]["stream_gb_per_s"], result["limits"]["tflop_per_s"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
             ' font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *axes(),
             *roof(stream, products["bf16"], f"cuBLAS bf16, {products['bf16']:.0f} TFLOP/s"),
             *roof(stream, products["f32"], f"cuBLAS f32, {products['f32']:.0f} TFLOP/s")]
    for index, row in enumerate(result["rows"], 1):
        parts += marks(index, row)
    parts += [svg_text(LEFT + 8, 34, f"{result['card']}, {result['date']}", 12),
              svg_text(LEFT + 8, 50, f"best stream {stream:.0f} GB/s", 12),
              svg_text(LEFT + 8, 66, "blue fusec, orange its best peer", 12),
              svg_text(WIDTH - RIGHT + 14, 34, "best peer's time over ours", 12), "</svg>\n"]
    return "\n".join(parts)
