"""Rows of the table: each workload's contenders made, checked and timed. What fails is written down
and the rest goes on, unless the device is lost.
"""

import datetime
import os
import re
import subprocess
import sys
import time
import traceback

import torch

import contenders
import fusert
import report
import timing

# Seconds that making a contender may take, for the time budget: the slowest seen and some more.
EXPECTED_S = {"fusec": 3, "fast": 3, "eager": 1, "lt": 1, "sdpa": 2, "flex": 8, "compile": 5,
              "autotune": 40, "xla": 9}
REFUSAL = "No available kernel"  # PyTorch's words where a pinned backend does not take a case


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def versions(libraries):
    found = libraries.versions()
    found["torch"] = torch.__version__
    for name in ("triton", "jax"):
        try:
            found[name] = __import__(name).__version__
        except ImportError:
            found[name] = None
    return found


def card():
    query = "name,driver_version,clocks.max.sm,power.limit"
    try:
        text = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=20, check=True).stdout
        return text.strip().splitlines()[torch.cuda.current_device()]
    except (OSError, subprocess.SubprocessError, IndexError):
        return torch.cuda.get_device_name()


class Row:
    """One workload's measurement: entries by contender, failures aloud."""

    def __init__(self, workload, libraries, target, options):
        self.workload, self.libraries = workload, libraries
        self.target, self.options = target, options
        self.entries, self.failures, self.refused, self.skipped = {}, {}, {}, []
        self.timers, self.made, self.cases = {}, [], {}
        self.stream = torch.cuda.Stream()

    def attempt(self, name, layout, make, form=""):
        """Makes one contender, checks its result and prepares its timer. `form`: which of several
        that a peer has."""
        variant = " ".join(filter(None, (layout, form)))
        key = f"{name}/{variant}" if variant else name
        kind = "autotune" if name in ("compile", "flex") and self.is_searched() else name
        if time.monotonic() + EXPECTED_S[kind] > self.options.deadline:
            self.skipped.append(key)
            return
        try:
            case, buffers = self.cases[layout]
            torch.backends.cuda.matmul.allow_tf32 = case.unit == "tf32"
            contender = make(case, buffers)
            self.made.append(contender)
            with torch.cuda.stream(self.stream):
                result = contender.calls[0]()
            torch.cuda.synchronize()
            error = contenders.error_of(result, buffers.reference())
            del result
            self.entries[key] = {"compile_ms": contender.compile_ms, "error": error,
                                 **contender.notes}
            if not error <= self.workload.tolerance:
                raise fusert.Error(f"the result is wrong: relative error {error:.3g}, more than"
                                   f" {self.workload.tolerance:g}")
            self.timers[key] = timing.prepare(contender, self.stream)
        except Exception as error:  # whatever a peer raises
            kept = self.refused if REFUSAL in str(error) else self.failures
            kept[key] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            say(f"{self.workload.name}: {key} failed\n{traceback.format_exc(limit=-4)}")
            self.entries.pop(key, None)
            self.timers.pop(key, None)
            torch.cuda.synchronize()  # raises when the device is lost

    def check_replays(self):
        """What was timed is right too: replayed, fusec gives the bits that were found to be right."""
        for contender in self.made:
            key = f"{contender.name}/{contender.layout}" if contender.layout else contender.name
            if contender.name not in ("fusec", "fast") or key not in self.timers:
                continue
            n = contender.n_differing(self.timers[key].graph.replay)
            if n:
                self.failures[key] = f"replayed, {n} sets of outputs are not what calls give"
                self.entries.pop(key)

    def is_searched(self):
        return self.workload.has_matmul and \
            re.search(self.options.autotune, self.workload.name) is not None

    def make_all(self):
        workload = self.workload
        self.peers = [name for name in self.options.peers if name in workload.peers]
        layouts = [n for n in workload.layouts if not n or n in self.options.layouts]
        for layout in layouts:
            case = workload.build(layout)
            self.cases[layout] = (case, contenders.Buffers(
                case, self.options.seed, self.options.rotate_mib << 20, self.options.max_sets))
            self.attempt("fusec", layout, lambda case, buffers: contenders.Fusec(
                self.libraries, self.target, case, buffers))
            if self.options.fast:
                self.attempt("fast", layout, lambda case, buffers: contenders.Fusec(
                    self.libraries, self.target, case, buffers, "fast"))
            for name, function in (("eager", self.plain(case)), ("lt", case.lt)):
                if function:
                    self.attempt_torch(name, layout, function)
            for form, function in case.sdpa.items():
                self.attempt_torch("sdpa", layout, function, None, form)
        self.make_compilers(self.best_layout(layouts))

    @staticmethod
    def plain(case):
        return case.eager or (lambda torch_, *inputs: case.fn(contenders.TorchOps, *inputs))

    def attempt_torch(self, name, layout, function, mode=None, form=""):
        """The first word of a form is the backend for attention."""
        if name in self.peers:
            self.attempt(name, layout, lambda case, buffers: contenders.Torch(
                name, case, buffers, function, mode, form.partition(" ")[0]), form)

    def make_compilers(self, layout):
        """torch.compile and XLA, in the layout that the libraries run fastest."""
        case = self.cases[layout][0]
        mode = "max-autotune-no-cudagraphs" if self.is_searched() else "default"
        for form, function in (case.compiled or {"": self.plain(case)}).items():
            self.attempt_torch("compile", layout, function, mode, form)
        if case.flex:
            self.attempt_torch("flex", layout, case.flex, mode)
        if "xla" in self.peers:
            self.attempt("xla", layout, contenders.Xla)

    def best_layout(self, layouts):
        def quick(layout):
            timers = [self.timers[f"{name}/{layout}"] for name in ("eager", "lt")
                      if f"{name}/{layout}" in self.timers]
            return min((min(t.seconds(self.stream) for _ in range(3)) for t in timers),
                       default=float("inf"))
        return min(layouts, key=quick) if len(layouts) > 1 else layouts[0]

    def measure(self):
        try:
            self.make_all()
            times = timing.alternate(self.timers, self.stream, self.options.rounds)
            for key, seconds in times.items():
                self.entries[key]["us"], self.entries[key]["spread_us"] = timing.spread(seconds)
                self.entries[key]["all_us"] = [round(1e6 * value, 3) for value in seconds]
            self.check_replays()
        finally:
            for contender in self.made:
                contender.close()
            case = next(iter(self.cases.values()))[0] if self.cases else None
            self.timers, self.made, self.cases = {}, [], {}
            timing.release()
        return {"name": self.workload.name, "bytes": case.n_bytes(), "flops": case.flops,
                "unit": case.unit, "target": self.workload.target,
                "target_share": self.workload.share,
                "target_ptx_ms": self.workload.ptx_ms, "entries": self.entries,
                "failures": self.failures, "refused": self.refused, "skipped": self.skipped}


def describe(libraries, target, options):
    return {"date": datetime.date.today().isoformat(), "card": card(), "target": target,
            "numerics": "strict, fast" if options.fast else "strict",
            "versions": versions(libraries),
            "command": "peers.py " + " ".join(sys.argv[1:]), "rounds": options.rounds,
            "rotate_mib": options.rotate_mib}


def without_absent(peers):
    """The peers that are installed here, and why the others are not."""
    needs, absent = {"compile": "triton", "flex": "triton", "xla": "jax"}, {}
    for name in peers:
        try:
            __import__(needs.get(name, "torch"))
        except ImportError as error:
            absent[name] = str(error)
    return [name for name in peers if name not in absent], absent


def warm_compilers(libraries, target, peers):
    """Every compiler has compiled something before: start-up is nobody's compile time."""
    source = "graph warm(x: f32[64]) -> (y: f32[64]) {\n  y = softmax(x)\n}\n"
    libraries.program(libraries.compile(source, target, "warm.g")).close()
    if "compile" in peers:
        torch.compile(lambda x: torch.relu(x + 1))(torch.zeros(4096, device="cuda"))
    if "xla" in peers:
        import jax
        jax.jit(lambda x: x * 2 + 1)(jax.numpy.ones(4096)).block_until_ready()
    torch.cuda.synchronize()


def run(libraries, chosen, options):
    begin = time.monotonic()
    target = options.target or libraries.target_for(torch.cuda.get_device_capability())
    options.peers, absent = without_absent(options.peers)
    result = describe(libraries, target, options)
    result.update(absent=absent, rows=[], missing={})
    timing.warm_up(0.5)
    result["ceilings"] = timing.ceilings()
    say(f"ceilings {result['ceilings']} after {time.monotonic() - begin:.1f} s")
    warm_compilers(libraries, target, options.peers)
    for workload in chosen:
        started = time.monotonic()
        if started + EXPECTED_S["fusec"] > options.deadline:
            result["missing"][workload.name] = "no time was left"
            continue
        try:
            row = Row(workload, libraries, target, options).measure()
            result["rows"].append(row)
            missing = row["failures"].get("fusec") or ""
            say(f"{workload.name}: {time.monotonic() - started:.1f} s {missing}")
        except Exception as error:
            result["missing"][workload.name] = f"{type(error).__name__}: {error}"[:300]
            say(f"{workload.name} failed\n{traceback.format_exc(limit=-4)}")
            if device_is_lost():
                note_lost(result, chosen, workload)
                break
        report.write(result, options.out)
    result["seconds"] = time.monotonic() - begin
    report.finish(result, options.out)
    print(report.table(result))
    return report.status(result)


def device_is_lost():
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").cpu()
        return False
    except Exception:
        return True


def note_lost(result, chosen, workload):
    for later in chosen[chosen.index(workload) + 1:]:
        result["missing"][later.name] = f"the device was lost in {workload.name}"
