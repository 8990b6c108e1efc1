"""The bounds that docs/OPS.md states for functions of the prelude, for cases of tests/sweep."""
import ast
import re

import numpy as np

from draw import DTYPES, compute

WORDS = {"true": True, "false": False, "none": None, "inf": np.inf, **{name: name for name in DTYPES}}


def value_of(tree, inputs):
    """The value of an argument: an input's array, or a number, word or list."""
    if isinstance(tree, ast.Name):
        return np.asarray(inputs[tree.id][1]) if tree.id in inputs else WORDS.get(tree.id)
    if isinstance(tree, (ast.List, ast.Tuple)):
        return [value_of(item, inputs) for item in tree.elts]
    if isinstance(tree, ast.UnaryOp):
        return -value_of(tree.operand, inputs)
    return tree.value if isinstance(tree, ast.Constant) else None


def arguments_of(signature, text, inputs):
    """What each parameter of `name(a, b=1)` is in the call of it that a case has."""
    def_ = ast.parse(f"def {signature}: pass").body[0]
    names = [a.arg for a in def_.args.args]
    defaults = dict(zip(names[len(names) - len(def_.args.defaults):], def_.args.defaults))
    values = {name: value_of(tree, {}) for name, tree in defaults.items()}
    call = next(node for node in ast.walk(ast.parse(text, mode="eval"))
                if isinstance(node, ast.Call) and node.func.id == def_.name)
    values.update((name, value_of(tree, inputs)) for name, tree in zip(names, call.args))
    values.update((k.arg, value_of(k.value, inputs)) for k in call.keywords)
    return values


def helpers(values, wanted, dtype):
    """The functions and letters of an expression."""
    reduction = values.get("reduction", "mean")
    join = {"none": np.max, "sum": np.sum, "batchmean": np.sum}.get(reduction, np.mean)
    first = next((v for v in values.values() if isinstance(v, np.ndarray)), np.zeros(1))
    target = values.get("target")
    n_classes = first.shape[min(1, first.ndim - 1)] if first.ndim else 1
    return {
        "R": lambda v: join(np.asarray(v)), "C": n_classes,
        "N": first.size / n_classes if reduction == "sum" else 1,
        "P": n_classes if np.ndim(target) == first.ndim else 1, "y": wanted,
        "wide": DTYPES[dtype].eps / DTYPES[compute(dtype)].eps,
        "most": lambda v: 1.0 if v is None else float(np.max(np.abs(v), initial=0)),
        "abs": np.abs, "max": np.max, "min": np.min, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "size": np.size,
        "maximum": np.maximum, "shape": np.shape, "finite": lambda v: np.where(np.isfinite(v), v, 0.0),
        "extent": lambda v, axis: v.shape[axis], "variance": lambda v, axis: np.var(v, axis),
        "beside": lambda v, x: v if v.ndim == x.ndim else v[..., None],
        "parts": lambda v, n: v.reshape(len(v), n, -1),
        "taps": lambda size, rank: int(np.prod(size)) if isinstance(size, list) else size ** rank}


class Stated:
    """The bound of one name: its column of the page, and its signature."""

    def __init__(self, signature, column):
        self.signature, self.column = signature, column

    def apply(self, case):
        """Gives the case the tolerance that the page states; it fails if the case allows an exact function one."""
        dtype = case.outputs[0][0]
        if not DTYPES[dtype].is_float:
            assert case.relative == case.absolute == 0, "integers are exact"
        elif self.column == "exact":
            assert case.relative == case.absolute == 0, "the page says that it is exact"
        elif found := re.fullmatch(r"(\d+) eps", self.column):
            case.relative, case.absolute = float(found[1]) * DTYPES[dtype].eps, 8 * DTYPES[dtype].tiny
        elif found := re.fullmatch(r"n = `(.*)`, S = `(.*)`", self.column):
            values = arguments_of(self.signature, case.text, case.inputs)
            wanted = np.asarray(case.outputs[0][1])
            scope = {**helpers(values, wanted[np.isfinite(wanted)], dtype), **values, "__builtins__": {}}
            with np.errstate(all="ignore"):
                n, size = (eval(part.replace("\\|", "|"), scope) for part in found.groups())
            size = float(np.max(size, initial=0.0)) if np.size(size) else 0.0
            case.relative = 4 * DTYPES[dtype].eps
            case.absolute = 2 * (n ** 0.5 + 8) * DTYPES[compute(dtype)].eps * size + 2 * DTYPES[dtype].tiny
        return case
