"""Cases of ATen ops: functions of PyTorch and small inputs for them."""
import torch
import torch.nn.functional as F


def floats(*shape):
    return torch.randn(*shape)


def positive(*shape):
    return torch.rand(*shape) * 0.9 + 0.05


def integers(*shape):
    return torch.randint(-9, 10, shape)


def below(n, *shape):
    return torch.randint(0, n, shape)


def cases():
    """Pairs of a name and (function, inputs)."""
    x, y, p = floats(3, 5), floats(3, 5), positive(3, 5)
    i, j = integers(3, 5), integers(3, 5)
    image, mask = floats(2, 4, 8, 8), floats(3, 5) > 0
    for name in "abs sign neg relu floor ceil round trunc exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh erf sigmoid".split():
        yield name, (getattr(torch, name), [x])
    for name in "isnan isinf".split():
        yield name, (getattr(torch, name), [torch.where(x > 0.5, torch.inf, torch.where(x < -0.5, torch.nan, x))])
    for name in "log log2 log10 log1p sqrt rsqrt asin acos atanh reciprocal".split():
        yield name, (getattr(torch, name), [p])
    yield "acosh", (torch.acosh, [p + 1])
    for name in ("silu mish hardswish hardsigmoid relu6 logsigmoid softsign selu elu leaky_relu gelu hardtanh "
                 "celu softplus").split():
        yield name, (getattr(F, name), [x])
    yield "gelu_tanh", (lambda a: F.gelu(a, approximate="tanh"), [x])
    for name in "add sub mul div fmod remainder maximum minimum atan2 lt le gt ge".split():
        yield name, (getattr(torch, name), [x, y])
        yield name + " number", (getattr(torch, name), [x, 0.5]) if name not in ("maximum", "minimum", "atan2") else (
            getattr(torch, name), [y, x])
    for name in "lt le gt ge".split():
        yield name + " mixed", (getattr(torch, name), [i, 0.5])
    for name in "eq ne".split():
        yield name, (getattr(torch, name), [x, torch.where(mask, x, y)])
        yield name + " number", (getattr(torch, name), [x.round(), 1.0])
        yield name + " mixed", (getattr(torch, name), [i % 3, 1.0])
    yield "mul scalar", (lambda a: torch.ops.aten.mul.Scalar(a.clone(), 0.5), [x])
    yield "add alpha", (lambda a, b: torch.add(a, b, alpha=2), [x, y])
    yield "promotion", (lambda a, b: a + b, [x, i])
    yield "integers", (lambda a, b: (a + b * 3 - 1, a / (b * b + 1)), [i, j])
    yield "bools as numbers", (lambda a, b: ((a > 0) * (b < 1), (a > 0) + (b < 0), torch.maximum(a > 0, b > 0), (a > 0) < (b > 0),
                                             (a > 0) >= (b > 0), torch.sign(a > 0)), [x, y])
    yield "bools beside numbers", (lambda a, m: (a * True, m * 2.5, m + 1, m == True, m * True, (a > 0) * a), [x, mask])
    yield "bools moved", (lambda a, m, at: (F.pad(m, (1, 1), value=True), m.index_add(0, at, a > 0),
                                            m.scatter_add(1, torch.zeros_like(a, dtype=torch.int64), a > 0),
                                            torch.where(m, a > 0, False)), [x, mask, torch.tensor([0, 0, 1])])
    yield "true beside integers", (lambda a: (a == True, a * True, a + False), [i % 3])
    yield "integers are whole", (lambda a: (torch.floor(a), torch.ceil(a), torch.round(a), torch.trunc(a)), [i])
    yield "u8", (lambda a: (a.any(1), a.all(1), a.any(), F.hardtanh(a), a.clamp(-3, 300), a + 300, a - 1), [
        torch.randint(0, 3, (3, 5), dtype=torch.uint8)])
    yield "isfinite", (lambda a, b: torch.where(torch.isfinite(a / (b - b.round())), a, b), [x, i * 0.5])
    yield "logaddexp", (torch.logaddexp, [x, y])
    yield "isclose", (torch.isclose, [x, torch.where(mask, x, y)])
    yield "f16 and tiny numbers", (lambda a: (a + 1e-8, a * 1e-8, a <= 1e-9, torch.isclose(a, a + 0.25)), [x.half() * 1000])
    yield "erfinv", (torch.erfinv, [torch.cat([p * 2 - 1, torch.tensor([[0., 1, -1, 0.9999999, 1e-30]])])])
    yield "copysign", (lambda a, b: (torch.copysign(a, b), torch.copysign(a, -2.0), torch.copysign(a.half(), b.half()),
                                     torch.copysign(a, b.round() * 0.0)), [x, y])
    yield "rsub", (lambda a: 1 - a, [x])
    for mode in ("floor", "trunc"):
        yield f"div {mode}", (lambda a, b, mode=mode: torch.div(a, b, rounding_mode=mode), [x, y])
        yield f"div {mode} integers", (lambda a, b, mode=mode: torch.div(a, b.abs() + 1, rounding_mode=mode), [i, j])
    ends = torch.tensor([-128, 127, -91, 91], dtype=torch.int8)
    for name, size in (("i8", 1), ("i32", 2**24), ("i64", 2**56)):
        n = ends.to(getattr(torch, "int" + name[1:])) * size
        yield f"div floor {name}", (lambda a, b: torch.div(a, b, rounding_mode="floor"), [n, (n // size).flip(0) * size + 7])
    tenths = torch.tensor([1.0, -1.0, 3.0, -7.5, 0.0]), torch.tensor([0.1, 0.1, -0.3, 2.5, 0.1])
    yield "div floor of quotients near integers", (lambda a, b: (torch.div(a, b, rounding_mode="floor"), torch.div(
        a.half(), b.half(), rounding_mode="floor"), torch.div(
            a.bfloat16(), b.bfloat16(), rounding_mode="floor").float()), list(tenths))
    yield "remainder integers", (lambda a: torch.remainder(a, 4), [i])
    yield "remainder number", (lambda a: torch.remainder(a, -0.75), [x])
    for name in "bitwise_and bitwise_or bitwise_xor".split():
        yield name, (getattr(torch, name), [i, j])
    yield "bitwise_not", (lambda a, m: (~a, ~m), [i, mask])
    for name in "logical_and logical_or logical_xor".split():
        yield name, (getattr(torch, name), [x.relu(), mask])
    yield "logical_not", (torch.logical_not, [mask])
    for power in (2, 3, 0.5, 1.5, -1):
        yield f"pow {power}", (lambda a, power=power: a ** power, [p])
    yield "pow tensors", (torch.pow, [p, y])
    yield "pow of a number", (lambda a: 2.0 ** a, [x])
    yield "clamp", (lambda a: (a.clamp(-0.5, 0.5), a.clamp(min=0.1), a.clamp(max=0.1)), [x])
    yield "clamp tensors", (torch.clamp, [x, -p, p])
    yield "where", (torch.where, [mask, x, y])
    yield "masked_fill", (lambda a, m: a.masked_fill(m, float("-inf")), [x, mask])
    yield "to", (lambda a: (a.to(torch.int32), a.to(torch.float64)), [x * 5])
    yield "dropout", (lambda a: F.dropout(a, 0.5, False), [x])
    yield "full", (lambda a: a + torch.full((3, 5), 2.0), [x])
    yield "ones and zeros", (lambda a: (torch.ones_like(a), torch.zeros_like(a), a), [x])
    yield "full of bool", (lambda a: (torch.ones(3, 5, dtype=torch.bool) & (a > 0)), [x])
    yield "arange", (lambda a: a + torch.arange(2, 12, 2, dtype=torch.float32), [x])
    for name in "sum mean prod amax amin".split():
        yield name, (lambda a, op=getattr(torch, name): op(a, dim=1), [x])
        yield name + " keep", (lambda a, op=getattr(torch, name): op(a, dim=-1, keepdim=True), [x])
    yield "sum all", (lambda a: (a.sum(), a.mean(), a.prod()), [x])
    yield "sum axes", (lambda a: (a.sum((0, 2)), a.mean((1, 3), keepdim=True)), [image])
    yield "sum of bools", (lambda m: m.sum(1), [torch.ones(3, 5).tril(3) > 0])
    yield "any and all", (lambda m: (m.any(), m.any(1), m.all(0), m.any((0, 1))), [torch.eye(5) > 0.5])
    yield "argmax", (lambda a: (a.argmax(1), a.argmin(0), a.argmax()), [x])
    yield "max of an axis", (lambda a: (*a.max(1), *a.min(0)), [x])
    yield "var", (lambda a: (a.var(1), a.var((0, 1), correction=0, keepdim=True), a.std(0)), [x])
    yield "cumsum", (lambda a: a.cumsum(1), [x])
    yield "sort", (lambda a: (*a.sort(1), a.sort(0, descending=True).values), [x])
    yield "topk", (lambda a: (*a.topk(2), *a.topk(2, dim=0, largest=False)), [x])
    yield "softmax", (lambda a: (a.softmax(0), a.log_softmax(-1)), [x])
    yield "view", (lambda a: (a.view(5, 3), a.flatten(), a.unsqueeze(1).squeeze(1)), [x])
    yield "expand", (lambda a: a[:, None].expand(3, 4, 5), [x])
    yield "permute", (lambda a: a.permute(2, 0, 3, 1), [image])
    yield "as_strided", (lambda a: (a * 2).permute(0, 2, 3, 1).as_strided((2, 8, 32), (256, 1, 8)), [image])
    yield "repeat", (lambda a: a.repeat(2, 3), [x])
    yield "flip", (lambda a: a.flip(0, 1), [x])
    yield "roll", (lambda a: (a.roll(2), a.roll((1, -4), (0, 1)), a.roll(7, 1)), [x])
    yield "cat", (lambda a, b: (torch.cat([a, b], 1), torch.stack([a, b])), [x, y])
    yield "split", (lambda a: tuple(a.split([1, 4], 1)), [x])
    yield "select", (lambda a: (a[1], a[:, -1]), [x])
    yield "slice", (lambda a: (a[1:], a[:, -3:-1], a[:, ::2], a[:, 1:100]), [x])
    yield "slice_scatter", (lambda a, b: torch.slice_scatter(a, b[:, :2], 1, 1, 3), [x, y])
    yield "select_scatter", (lambda a, b: torch.select_scatter(a, b[:, 0], 1, 2), [x, y])
    yield "pad", (lambda a: (F.pad(a, (1, 2, 0, 1), value=3.0), F.pad(a, (-1, 1))), [x])
    yield "pad reflect", (lambda a: F.pad(a, (1, 2, 3, 0), mode="reflect"), [image])
    yield "pad replicate", (lambda a: F.pad(a, (1, 2, 3, 0), mode="replicate"), [image])
    yield "embedding", (F.embedding, [below(3, 2, 4), x])
    yield "index_select", (lambda a, k: a.index_select(1, k), [x, below(5, 4)])
    yield "gather", (lambda a, k: a.gather(1, k), [x, below(5, 3, 2)])
    yield "index", (lambda a, k, m: (a[k], a[:, m], a[k, m]), [x, below(3, 4), below(5, 4) - 5])
    yield "scatter", (lambda a, k, s: (a.scatter_add(1, k, s), a.scatter(1, k, 2.5)), [x, below(5, 3, 2), floats(3, 2)])
    yield "scatter part", (lambda a, k, s: a.scatter_add(1, k, s), [x, below(5, 3, 2), floats(4, 5)])
    for reduce in "sum prod mean amax amin".split():
        yield f"scatter_reduce {reduce}", (lambda a, k, s, reduce=reduce: a.scatter_reduce(1, k, s, reduce),
                                           [x, below(5, 3, 4), floats(3, 4)])
    yield "scatter_reduce alone", (lambda a, k, s: a.scatter_reduce(0, k, s, "sum", include_self=False),
                                   [x, below(3, 2, 5), floats(2, 5)])
    yield "index_put", (lambda a, k, v: (a.index_put((k,), v), torch.ops.aten.index_put(a, [None, k], v[:, :2])),
                        [x, torch.tensor([2, -3]), floats(1, 5)])
    yield "index_put pairs", (lambda a, k, m, v: torch.ops.aten.index_put(a, [None, k, m], v),
                              [image, torch.tensor([[1], [2]]), torch.tensor([0, -1, 4]), floats(2, 3, 8)])
    yield "index_put adding", (lambda a, k, m, v: a.index_put((k, m), v, accumulate=True),
                               [x, below(3, 9), below(5, 9), floats(9)])
    yield "index_put of a mask", (lambda a, m: (a.index_put((m,), torch.tensor(0.5)), a.index_put((m[:, 0],), a[0, 0])),
                                  [x, mask])
    yield "in place", (lambda a, b: (a * 1).index_copy_(0, torch.tensor([2, 0]), b[:2]), [x, y])
    yield "diagonal", (lambda a: (a.diagonal(), a.diagonal(1), a.diagonal(-1)), [x])
    yield "diagonal of axes", (lambda a: a.diagonal(1, 3, 1), [image])
    yield "matmul", (lambda a, b: (a @ b.T, torch.bmm(a[None], b.T[None]), F.linear(a, b)), [x, y])
    yield "addmm", (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), [floats(3), x, floats(5, 3)])
    yield "attention", (F.scaled_dot_product_attention, [floats(2, 2, 6, 8)] * 3)
    q, k, v = floats(2, 4, 6, 8), floats(2, 2, 9, 8), floats(2, 2, 9, 7)
    yield "attention of groups", (
        lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True, scale=0.3, enable_gqa=True), [q, k, v])
    seen = floats(2, 1, 6, 9) > 0
    seen[0, 0, 2] = False  # PyTorch gives zeros to a row that sees no key
    hides = torch.where(seen, floats(2, 1, 6, 9), -torch.inf)
    yield "attention with a mask", (F.scaled_dot_product_attention, [q[:, :2], k, v, seen])
    yield "attention with numbers", (F.scaled_dot_product_attention, [q[:, :2], k, v, hides])
    yield "attention with a matrix", (F.scaled_dot_product_attention, [q[:, :2], k, v, hides[0, 0]])
    yield "conv1d", (F.conv1d, [floats(2, 4, 9), floats(6, 4, 3), floats(6)])
    yield "conv2d", (lambda a, w: F.conv2d(a, w, stride=2, padding=1, groups=2), [image, floats(6, 2, 3, 3)])
    yield "conv2d dilated", (lambda a, w: F.conv2d(a, w, dilation=2), [image, floats(6, 4, 3, 3)])
    yield "conv3d", (F.conv3d, [floats(1, 2, 5, 5, 5), floats(3, 2, 3, 3, 3)])
    yield "conv_transpose2d", (lambda a, w: F.conv_transpose2d(a, w, stride=2, padding=1, output_padding=1),
                               [image, floats(4, 3, 3, 3)])
    yield "max_pool2d", (lambda a: F.max_pool2d(a, 3, 2, 1), [image])
    for size, stride, padding, dilation in ((3, 2, 0, 1), (2, 3, 1, 1), (3, 2, 1, 2), (2, 2, 0, 1)):
        yield f"max_pool2d ceil {size} {stride} {padding} {dilation}", (
            lambda a, how=(size, stride, padding, dilation): F.max_pool2d(a, *how, ceil_mode=True), [image - 5])
    yield "max_pool3d", (lambda a: F.max_pool3d(a, 2), [floats(1, 2, 4, 4, 4)])
    yield "avg_pool2d", (lambda a: (F.avg_pool2d(a, 2), F.avg_pool2d(a, 3, 2, 1, count_include_pad=False)), [image])
    for size, stride, padding, counts in ((3, 2, 0, True), (2, 3, 1, True), (3, 2, 1, False), (2, 2, 0, False)):
        yield f"avg_pool2d ceil {size} {stride} {padding} {counts}", (
            lambda a, how=(size, stride, padding, True, counts): F.avg_pool2d(a, *how), [image])
    yield "avg_pool2d divisor", (lambda a: F.avg_pool2d(a, 3, 2, 1, divisor_override=5), [image])
    yield "max_pool2d with places", (lambda a: (*F.max_pool2d(a, 3, 2, 1, return_indices=True),
                                                *F.max_pool2d(a, 2, 3, 0, 2, True, return_indices=True)), [image])
    yield "max_pool3d with places", (lambda a: F.max_pool3d(a, 2, return_indices=True), [floats(1, 2, 4, 4, 4)])
    yield "avg_pool3d", (lambda a: F.avg_pool3d(a, 2), [floats(1, 2, 4, 4, 4)])
    yield "adaptive_avg_pool", (lambda a: (F.adaptive_avg_pool2d(a, 1), F.adaptive_avg_pool2d(a, 3)), [image])
    yield "batch_norm", (lambda a, m, v, g: F.batch_norm(a, m, v, g), [image, floats(4), positive(4), floats(4)])
    yield "layer_norm", (lambda a, g, b: (F.layer_norm(a, (5,), g, b), F.layer_norm(a, (3, 5))),
                         [x, floats(5), floats(5)])
    yield "group_norm", (lambda a, g: (F.group_norm(a, 2, g), F.instance_norm(a)), [image, floats(4)])
    yield "nearest", (lambda a: F.interpolate(a, scale_factor=2), [image])
    yield "bilinear", (lambda a: F.interpolate(a, size=(13, 11), mode="bilinear"), [image])
    yield "bilinear corners", (lambda a: F.interpolate(a, size=(13, 11), mode="bilinear", align_corners=True), [image])
    yield "bilinear by fractions", (lambda a: (F.interpolate(a, scale_factor=1.5, mode="bilinear"), F.interpolate(
        a, scale_factor=(0.5, 2.25), mode="bilinear", align_corners=True)), [image])
    yield "grid_sample", (lambda a, g: F.grid_sample(a, g, align_corners=False), [image, floats(2, 3, 3, 2) / 2])
    yield from by_overload()
    yield from beyond_core()


def by_overload():
    """Cases of overloads that the Python functions of PyTorch do not call."""
    aten, x, y, i = torch.ops.aten, floats(3, 5), floats(3, 5), integers(3, 5)
    for name in "add sub div".split():
        yield name + ".Scalar", (getattr(aten, name).Scalar, [x, 0.75])
    yield "div.Scalar_mode", (lambda a: aten.div.Scalar_mode(a, 0.75, rounding_mode="floor"), [x])
    for name in "bitwise_and bitwise_or bitwise_xor".split():
        yield name + ".Scalar", (getattr(aten, name).Scalar, [i, 6])
    yield "any.dims", (lambda m: aten.any.dims(m, [0, 2]), [torch.eye(5).reshape(1, 5, 5) > 0.5])
    yield "mm", (torch.mm, [x, floats(5, 3)])
    yield "squeeze.dims", (lambda a: aten.squeeze.dims(a[None, :, None], [0, 2]), [x])
    yield "fill.Scalar", (lambda a: aten.fill.Scalar(a, 2.0) + a, [x])
    yield "empty", (lambda a: aten.fill.Scalar(torch.empty(3, 5), 2.0) + a, [x])
    yield "empty_strided", (lambda a: aten.copy.default(torch.empty_strided((3, 5), (1, 3)), a) * 2, [x])
    yield "copy", (lambda a, b: aten.copy.default(a, b), [x, y])
    yield "alias", (lambda a: aten.alias.default(a) * 2, [x])
    yield "scatter.src", (lambda a, k, s: a.scatter(1, k, s), [x, torch.tensor([[0, 3], [4, 1], [2, 0]]), floats(3, 2)])
    yield "avg_pool1d", (lambda a: F.avg_pool1d(a, 3, 2), [floats(2, 3, 9)])
    yield "adaptive_avg_pool1d", (lambda a: F.adaptive_avg_pool1d(a, 4), [floats(2, 3, 9)])
    yield "native_dropout", (lambda a: aten.native_dropout.default(a, 0.5, False)[0], [x])
    yield "adaptive_avg_pool3d", (lambda a: F.adaptive_avg_pool3d(a, 2), [floats(1, 2, 4, 4, 4)])
    yield "_adaptive_avg_pool2d", (lambda a: aten._adaptive_avg_pool2d(a, [3, 2]), [floats(2, 3, 6, 8)])
    yield "_adaptive_avg_pool3d", (lambda a: aten._adaptive_avg_pool3d(a, [2, 2, 2]), [floats(1, 2, 4, 4, 4)])
    yield "pad of one axis", (lambda a: (F.pad(a, (2, 1), mode="reflect"), F.pad(a, (2, 1), mode="replicate")), [x])
    yield "distances 0.0", (lambda a, b: (aten._cdist_forward(a.round(), b.round(), 0.0, None),
                                          aten._pdist_forward(a.round(), 0.0)), [x, floats(4, 5)])
    for p in (1.0, 1.5, 2.0, float("inf")):
        yield f"distances {p}", (lambda a, b, p=p: (aten._cdist_forward(a, b, p, None), aten._pdist_forward(a, p)),
                                 [x, floats(4, 5)])
    yield "distances of batches", (lambda a, b: aten._cdist_forward(a, b, 2.0, None), [floats(2, 3, 5), floats(2, 4, 5)])
    yield "masked_scatter", (lambda a, m, b: (a.masked_scatter(m, b), a.masked_scatter(m[1], b)), [x, x > 0, y])
    for mode in (0, 1, 2):
        yield f"_embedding_bag {mode}", (
            lambda a, k, mode=mode: aten._embedding_bag(a, k, torch.tensor([0, 2, 2, 5]), False, mode)[0], [x, below(3, 7)])
    yield "_embedding_bag with weights", (
        lambda a, k, w: aten._embedding_bag(a, k, torch.tensor([0, 2, 3, 7]), False, 0, False, w, True)[0],
        [x, below(3, 7), floats(7)])
    yield "col2im", (lambda a, b: (F.fold(a, (6, 7), (2, 3), stride=2, padding=1), F.fold(b, (5, 6), 2, dilation=2)),
                     [floats(2, 18, 16), floats(2, 8, 12)])
    yield "statistics", (lambda a, b: (*aten.native_layer_norm(a, [5], None, None, 1e-5),
                                       *aten.native_group_norm(b, None, None, 2, 4, 64, 2, 1e-5),
                                       *aten._native_batch_norm_legit.no_stats(b, None, None, True, 0.1, 1e-5)), [x, floats(2, 4, 8, 8)])
    yield from backward_passes(aten)
    for mode in ("reflect", "replicate"):
        yield f"pad {mode} of three axes", (lambda a, mode=mode: F.pad(a, (1, 2, 0, 1, 1, 0), mode=mode),
                                            [floats(1, 2, 3, 4, 5)])


def backward_passes(aten):
    every, image, x = [True, True, True], floats(2, 4, 8, 8), floats(3, 5)
    yield "layer_norm backward", (
        lambda g, a, w, b: aten.native_layer_norm_backward(g, a, [5], *aten.native_layer_norm(a, [5], w, b, 1e-5)[1:], w, b, every),
        [floats(3, 5), x, floats(5), floats(5)])
    yield "group_norm backward", (
        lambda g, a, w: aten.native_group_norm_backward(g, a, *aten.native_group_norm(a, w, None, 2, 4, 64, 2, 1e-5)[1:], w, 2, 4, 64, 2, every),
        [floats(2, 4, 8, 8), image, floats(4)])
    for stride, padding, dilation, groups in ((1, 1, 1, 1), (2, 1, 1, 2), (2, 0, 2, 4)):
        size = (8 + 2 * padding - 2 * dilation - 1) // stride + 1
        yield f"convolution backward {stride} {padding} {dilation} {groups}", (
            lambda g, a, w, s=[stride] * 2, p=[padding] * 2, d=[dilation] * 2, n=groups: aten.convolution_backward(
                g, a, w, [8], s, p, d, False, [0, 0], n, every),
            [floats(2, 8, size, size), image, floats(8, 4 // groups, 3, 3)])
    yield "convolution backward of a line", (
        lambda g, a, w: aten.convolution_backward(g, a, w, [6], [2], [1], [1], False, [0], 1, every),
        [floats(2, 6, 5), floats(2, 4, 9), floats(6, 4, 3)])
    yield "avg_pool2d backward", (
        lambda g, h, a: (aten.avg_pool2d_backward(g, a, [2, 2], [], [0, 0], False, True, None),
                         aten.avg_pool2d_backward(h, a, [3, 3], [3, 3], [1, 1], False, True, 4)),
        [floats(2, 4, 4, 4), floats(2, 4, 3, 3), image])
    yield "adaptive_avg_pool2d backward", (
        lambda g, a: aten._adaptive_avg_pool2d_backward(g, a), [floats(2, 4, 3, 5), image])
    yield "max_pool2d backward", (
        lambda g, a: aten.max_pool2d_with_indices_backward(
            g, a, [3, 3], [2, 2], [1, 1], [1, 1], False, aten.max_pool2d_with_indices(a, [3, 3], [2, 2], [1, 1])[1]),
        [floats(2, 4, 4, 4), image])
    yield "embedding backward", (
        lambda g, k: (aten.embedding_dense_backward(g, k, 3, -1, False), aten.embedding_dense_backward(g, k, 3, 1, False)),
        [floats(2, 4, 5), below(3, 2, 4)])


def beyond_core():
    """Cases of ops that are no core ATen ops, and that PyTorch's decompositions leave."""
    aten, x, y, i, image = torch.ops.aten, floats(3, 5), floats(3, 5), integers(3, 5), floats(2, 4, 8, 8)
    yield "hypot", (torch.hypot, [x, y])
    yield "shifts", (lambda a, b: (a << b, a >> b, a << 2, a.bitwise_right_shift(b)), [i, below(5, 3, 5)])
    yield "numbers before", (lambda a: (aten.bitwise_and.Scalar_Tensor(6, a), aten.remainder.Scalar_Tensor(7, a)), [2 * i + 1])
    for name in "cumprod logcumsumexp".split():
        yield name, (lambda a, op=getattr(torch, name): (op(a, 1), op(a, 0)), [x])
    for name in "cummax cummin".split():
        yield name, (lambda a, k, op=getattr(torch, name): (*op(a, 1), *op(a.round(), 0), *op(k % 3, 1)), [x, i])
        yield name + " of NaN", (lambda a, op=getattr(torch, name): op(a, 1), [torch.where(x > 0.5, torch.nan, x.round())])
    yield "median with places", (lambda a, k: (*a.median(1), *a.median(0, True), *k.median(1)),
                                 [x, torch.stack([torch.randperm(5) for _ in range(3)])])
    yield "median of NaN", (lambda a: a.median(1), [torch.where(torch.eye(3, 5) > 0, torch.nan, x)])
    yield "erfc", (torch.erfc, [x * 2])
    yield "erfc of large numbers", (torch.erfc, [3.5 + positive(3, 5)])
    yield "lgamma", (torch.lgamma, [x * 4])
    yield "lgamma of special numbers", (torch.lgamma, [torch.tensor([0.5, 1.0, 2.0, 3.0, -2.0, 0.0, 30.5, -0.25, torch.inf])])
    yield "pow of integers", (lambda k: (k ** 0, k ** 4, k ** 7, k.int() ** 5, k ** 13), [i])
    yield "a number of a tensor", (
        lambda a, k: (a.clamp(max=a[0, 0].item()), a * k[0, 0].item() - a[0, 1].item(), a > a[0, 0].item(),
                      torch.full((3,), a[0, 1].item())), [x, i])
    yield "cond", (lambda a, b: torch.cond(a.sum() > 0, lambda c, d: (c.sin(), d * 2), lambda c, d: (c.cos() - 1, d - 1), (a, b)),
                   [torch.tensor([[-1.0, 2.0], [0.5, -1.0]]), floats(2, 2)])
    for mode in ("bilinear", "bicubic"):
        yield f"{mode} antialiased", (
            lambda a, mode=mode: (F.interpolate(a, size=(3, 13), mode=mode, antialias=True),
                                  F.interpolate(a, scale_factor=(0.7, 1.6), mode=mode, antialias=True)), [image])
    yield "var_mean", (lambda a: (*torch.var_mean(a, 1), *torch.var_mean(a, (0, 1), correction=0, keepdim=True)), [x])
    yield "stable sort", (lambda a: (*a.sort(dim=1, stable=True), a.argsort(dim=0, descending=True, stable=True)), [i % 3])
    yield "kthvalue", (lambda a: (*a.kthvalue(2, 1), a.kthvalue(3, 0, True)[0]), [x])
    yield "histc", (lambda a: (torch.histc(a, 9, -1, 1), torch.histc(a, 3, 0, 2)), [torch.linspace(-1.2, 1.2, 40)])
    yield "searchsorted", (lambda a, b: (torch.searchsorted(a, b), torch.searchsorted(a[1], b, right=True),
                                         torch.bucketize(b, a[0]), torch.bucketize(b, a[0], right=True)),
                           [torch.sort(x.round())[0], y.round()])
    yield "unfold", (lambda a: (a.unfold(3, 3, 2), a.unfold(1, 2, 1), a[0, 0, 0].unfold(0, 8, 1)), [image])
    yield "index apart", (lambda a, k, m: (a[k, :, m], a[:, k, :, m]), [image, below(2, 3), below(8, 4, 3) - 3])
    yield "index_put apart", (lambda a, k, m, v: (aten.index_put(a, [None, k, None, m], v), aten.index_put(a, [k, None, m], v[:1, :1])),
                              [image, torch.tensor([1, 0, -1]), torch.tensor([[0, -1, 4], [2, 3, 5]]), floats(3, 2, 8)])
    yield "slice_scatter steps", (lambda a, b: (torch.slice_scatter(a, b[:, :2], 1, 1, 5, 2), torch.slice_scatter(a, b[:2], 0, 0, 3, 2)),
                                  [x, y])
    yield "adaptive_max_pool", (lambda a: (F.adaptive_max_pool2d(a, 2), F.adaptive_max_pool2d(a, (3, 5)), F.adaptive_max_pool3d(a[None], 2)),
                                [image])
    yield "addmv and addbmm", (lambda c, a, b: (torch.addmv(c, a, b[0, 0], alpha=2), torch.addbmm(a[:, :3], b, b.mT, beta=0.5)),
                               [floats(3), x, floats(2, 3, 5)])
    ends = torch.tensor([2, 2, 5, 7], dtype=torch.int32)
    yield "grouped products", (lambda a, b: aten._grouped_mm(a.bfloat16(), b.bfloat16(), ends).float(),
                              [integers(7, 8) % 4, integers(4, 8, 16) % 4])
