"""A case of each loss of the prelude, beside PyTorch; they join the cases of prelude_cases.py."""
import numpy as np
import torch
import torch.nn.functional as F

from draw import DTYPES, FLOATS, INTEGERS, call, compute, rounded
from prelude_cases import case, floats_case, wide


def reduction(d, more=()):
    """An argument, or none."""
    return {"reduction": d.of(["none", "mean", "sum", *more])} if d.flag(0.7) else {}


def n_summed(given, x):
    """How many terms of the size 1 a result may be the sum of."""
    return x.size if given.get("reduction") in ("sum", "batchmean") else 1


@case("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div", "hinge_embedding_loss", "soft_margin_loss")
def loss(d, name):
    dtype, shape = d.of(FLOATS), d.shape(1, 3)
    x, t = d.floats(dtype, shape), d.floats(dtype, shape)
    given = reduction(d, ["batchmean"] if name == "kl_div" else [])
    if name == "huber_loss" and d.flag():
        given["delta"] = d.of([0.5, 2.0])
    if name == "smooth_l1_loss" and d.flag():
        given["beta"] = d.of([0.5, 2.0])
    if name == "kl_div" and d.flag(0.7):
        t = np.where(d.rng.random(shape) < 0.1, 0.0, d.floats(dtype, shape, low=0.0, high=1.0))
    elif name == "kl_div":
        t, given["log_target"] = d.floats(dtype, shape, low=-4.0, high=0.0), True
    if name in ("hinge_embedding_loss", "soft_margin_loss"):
        t = np.where(d.rng.random(shape) < 0.5, 1.0, -1.0)
    if name == "hinge_embedding_loss":
        given["margin"] = d.of([0.5, 1.0])
    wanted = getattr(F, name)(*wide(x, t), **given).numpy()
    return floats_case(call(name, "x", "t", **given), {"x": (dtype, x), "t": (dtype, t)}, [(dtype, wanted)], x.size,
                       8.0 * n_summed(given, x))


@case("binary_cross_entropy", "binary_cross_entropy_with_logits", "multilabel_soft_margin_loss")
def binary_loss(d, name):
    dtype, shape = d.of(FLOATS), d.shape(1, 3)
    shape = (d.int(1, 9), *shape[:1]) if name.startswith("multilabel") else shape
    x, t = d.floats(dtype, shape, 3), d.floats(dtype, shape, low=0.0, high=1.0)
    if name == "binary_cross_entropy":
        x = np.where(d.rng.random(shape) < 0.05, d.of([0.0, 1.0]), d.floats(dtype, shape, low=0.0, high=1.0))
    inputs, given, factors = {"x": (dtype, x), "t": (dtype, t)}, reduction(d), {}
    for argument in ("weight", "pos_weight"):
        if d.flag(0.4) and (argument == "weight" or name.endswith("logits")):
            factors[argument] = d.floats(dtype, shape[-1:], low=0.5, high=2.0)
            inputs[argument] = (dtype, factors[argument])
    theirs = {k: wide(v)[0] for k, v in factors.items()}
    if name == "binary_cross_entropy" and factors:
        theirs["weight"] = theirs["weight"].expand(shape)
    wanted = getattr(F, name)(*wide(x, t), **theirs, **given).numpy()
    text = call(name, "x", "t", *(f"{k}={k}" for k in factors), **given)
    most = 200.0 if name == "binary_cross_entropy" else 40.0
    return floats_case(text, inputs, [(dtype, wanted)], x.size, most * n_summed(given, x))


@case("poisson_nll_loss", "gaussian_nll_loss", "margin_ranking_loss")
def loss_of_two(d, name):
    dtype, shape = d.of(FLOATS), d.shape(1, 3)
    x, t, v = d.floats(dtype, shape), d.floats(dtype, shape), d.floats(dtype, shape, low=0.1, high=2.0)
    given = reduction(d)
    inputs = {"x": (dtype, x), "t": (dtype, t)}
    if name == "margin_ranking_loss":
        v = np.where(v < 1, 1.0, -1.0)
        given["margin"] = d.of([0.0, 0.5])
    elif d.flag():
        given["full"] = True
    if name == "poisson_nll_loss":
        t = np.abs(d.numbers("i32", shape)) * 1.0
        inputs["t"] = (dtype, t)
        if d.flag():
            given["log_input"], inputs["x"] = False, (dtype, x := np.abs(x) + 0.0)
        if compute(dtype) == "f32":  # 1e-8 is lost in f32, but where x is 0
            x = np.where(x == 0, 1.0, x)
            inputs["x"] = (dtype, x)
        wanted = F.poisson_nll_loss(*wide(x, t), **given)
    else:
        if name == "gaussian_nll_loss" and len(shape) > 1 and d.flag(0.4):
            v = v[..., :1] if d.flag() else v[..., 0]
        inputs["v"] = (dtype, v)
        wanted = getattr(F, name)(*wide(x, t, v), **given)
    return floats_case(call(name, *inputs, **given), inputs, [(dtype, wanted.numpy())], x.size,
                       200.0 * n_summed(given, x))


def class_inputs(d, dtype):
    """x, classes for its rows, and the number of classes: [N, C, ..] or [C]."""
    n, c = d.int(1, 9), d.int(1, 33)
    more = d.of([(), (), (d.int(1, 4),), (d.int(1, 3), d.int(1, 3))])
    shape = (c,) if d.flag(0.15) else (n, c, *more)
    index, rows = d.of(["i32", "i64", "i64", "u8", "i16"]), shape[:1] + shape[2:] if len(shape) > 1 else ()
    return d.floats(dtype, shape, 2), index, d.integers(index, rows, 0, c - 1), c


@case("nll_loss", "cross_entropy", "multi_margin_loss")
def class_loss(d, name):
    dtype = d.of(FLOATS)
    x, index, t, c = class_inputs(d, dtype)
    given, inputs = reduction(d), {"x": (dtype, x), "t": (index, t)}
    theirs = {}
    if name == "multi_margin_loss":
        x = x.reshape(x.shape[:2] + (-1,))[:, :, 0] if x.ndim > 2 else x
        t = t.reshape(len(t), -1)[:, 0] if t.ndim > 1 else t
        inputs = {"x": (dtype, x), "t": (index, t)}
        given.update(d.of([{}, {"p": 2}, {"margin": 0.5}]))
    elif d.flag():
        ignored = d.of([-100, 0]) if index[0] != "u" else 0
        t = np.where(d.rng.random(np.shape(t)) < 0.3, ignored, t)
        inputs["t"] = (index, t)
        given.update({"ignore_index": 0} if ignored == 0 else {})
    if name == "cross_entropy" and d.flag(0.4):
        given["label_smoothing"] = d.of([0.1, 0.5])
    soft = name == "cross_entropy" and "ignore_index" not in given and d.flag(0.3)
    if soft:
        t = d.floats(dtype, x.shape, low=0.0, high=1.0)
        inputs["t"] = (dtype, t)
    words = ["x", "t"]
    if d.flag(0.4):
        w = d.floats(dtype, (c,), low=0.5, high=2.0)
        inputs["w"], theirs["weight"] = (dtype, w), wide(w)[0]
        words.append("weight=w")
    target = wide(t)[0] if soft else torch.from_numpy(np.asarray(t)).long()
    wanted = getattr(F, name)(wide(x)[0], target, **theirs, **given).numpy()
    size = 32.0 * max(1, np.size(t)) * (c if soft else 1)
    return floats_case(call(name, *words, **given), inputs, [(dtype, wanted)], x.size, size)


@case("linear_cross_entropy")
def linear_class_loss(d):
    dtype, c, k, index = d.of(FLOATS), d.int(1, 40), d.of([1, 8, 33]), d.of(["i32", "i64"])
    rows = d.of([(d.int(1, 17),), (d.int(1, 3), d.int(1, 9))])
    x, w, t = d.floats(dtype, rows + (k,)), d.floats(dtype, (c, k)), d.integers(index, rows, 0, c - 1)
    t = np.where(d.rng.random(rows) < d.of([0.0, 0.3]), -100, t)
    given, inputs = reduction(d), {"x": (dtype, x), "w": (dtype, w), "t": (index, t)}
    words, scores = ["x", "w", "t"], wide(x)[0] @ wide(w)[0].T
    if d.flag(0.4):
        b = d.floats(dtype, (c,))
        inputs["b"], scores = (dtype, b), scores + wide(b)[0]
        words.append("b")
    wanted = F.cross_entropy(scores.reshape(-1, c), torch.from_numpy(t).reshape(-1).long(), **given)
    wanted = wanted.reshape(rows if given.get("reduction") == "none" else ()).numpy()
    return floats_case(call("linear_cross_entropy", *words, **given), inputs, [(dtype, wanted)], w.size,
                       32.0 * max(1, t.size) * k)


@case("cosine_similarity", "cosine_embedding_loss", "triplet_margin_loss")
def angle(d, name):
    dtype, n, c = d.of(FLOATS), d.int(1, 17), d.int(1, 33)
    a, b, p = (d.floats(dtype, (n, c)) for _ in range(3))
    if name == "cosine_similarity":
        shape = d.shape(1, 3)
        a, b, axis = rounded(dtype, d.floats(dtype, shape) * d.of([1, 1, 1e-6])), d.floats(dtype, shape), d.axis(len(shape))
        wanted = F.cosine_similarity(*wide(a, b), dim=axis).numpy()
        return floats_case(call(name, "a", "b", axis=axis), {"a": (dtype, a), "b": (dtype, b)}, [(dtype, wanted)], 64,
                           8.0)
    given = {"margin": d.of([0.25, 0.5, 1.0]), **reduction(d)}
    if name == "triplet_margin_loss":
        given.update(d.of([{}, {"p": 1}, {"swap": True}, {"p": 3, "eps": 1e-3, "swap": True}]))
        wanted = F.triplet_margin_loss(*wide(a, b, p), **given).numpy()
        return floats_case(call(name, "a", "b", "p", **given),
                           {"a": (dtype, a), "b": (dtype, b), "p": (dtype, p)},
                           [(dtype, wanted)], n * c, 32.0 * n)
    if d.flag(0.2):
        a, b = a[0], b[0]
    t = np.where(d.rng.random(a.shape[:-1]) < 0.5, 1.0, -1.0)
    tiny = d.of([1, 1, 1e-6])
    a = rounded(dtype, a * tiny)
    square = lambda x: (x * x).sum(-1) + 1e-12  # PyTorch adds the nearest number of f32, of f64 too
    cosine = (a * b).sum(-1) / np.sqrt(square(a) * square(b))
    wanted = np.where(t > 0, 1 - cosine, np.maximum(cosine - given["margin"], 0))
    wanted = {"none": wanted, "sum": wanted.sum(), "mean": wanted.mean()}[given.get("reduction", "mean")]
    return floats_case(call(name, "a", "b", "t", **given), {"a": (dtype, a), "b": (dtype, b), "t": (dtype, t)},
                       [(dtype, wanted)], n * c, 8.0 * n)
