"""Networks of PyTorch that the project's importer (python/fusec) takes in: ResNet-50, a GPT-2 block
and a Llama block. Weights are random, and activations stay near 1. The peer is torch.compile of the
same module. These rows need PyTorch even to be compiled.
"""

import copy
import math
import os
import sys

from cases import Case, Tensor, Workload
from decoder import turned

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "..", "..")
IMPORTER = [HERE, os.path.join(TREE, "python")]  # in the kit; in a tree
EXAMPLES = [HERE, os.path.join(TREE, "dsl", "examples")]


def import_model(model, example):
    """The source that the importer writes, its input, its output and its weights."""
    sys.path += [folder for folder in IMPORTER if folder not in sys.path]
    from fusec import from_torch
    program = from_torch(model, (example,))
    return program.source, program.inputs[0], program.outputs[0], program.weights


def take_example(model, example):
    """The same of dsl/examples/resnet50.g, in the network's own sizes, which takes the model's
    weights under the same names."""
    path = next(p for p in (os.path.join(f, "resnet50.g") for f in EXAMPLES) if os.path.exists(p))
    with open(path) as file:
        source = file.read()
    for old, new in (("dim B in 1..256", f"dim B = {example.shape[0]}"), ("S = 32 ", "S = 224"),
                     ("W = 8 ", "W = 64"), ("N = 10 ", "N = 1000"), ("f32[", "bf16[")):
        if old not in source:
            raise ValueError(f"{path} has no `{old}`")
        source = source.replace(old, new)
    return source, "x", "y", {key: data for key, data in model.state_dict().items() if data.dim()}


def network(make, shape, flops, backends=(), take=import_model):
    """`make(torch, shape)` is a model of one bf16 input. `backends`: of its attention."""
    def build(layout):
        import torch
        torch.manual_seed(1)
        with torch.no_grad():
            model = make(torch, shape).eval()
            result = copy.deepcopy(model).to("meta")(torch.empty(
                shape, dtype=torch.bfloat16, device="meta"))
        source, x, y, weights = take(model, torch.randn(shape).bfloat16())
        inputs, outputs = [Tensor(x, "bf16", shape)], [Tensor(y, "bf16", tuple(result.shape))]
        there = "cuda" if torch.cuda.is_available() else "cpu"
        peer = copy.deepcopy(model).to(there, memory_format=torch.channels_last)

        def fn(o, x):
            return (copy.deepcopy(model).to(x.device).double()(x),)

        def run(torch_, x):
            return (peer(x),)
        return Case(layout, source, inputs, outputs, fn, flops, "bf16", eager=run,
                    sdpa={name: run for name in backends},
                    compiled={name: run for name in backends}, weights=weights)
    return build


# ---- ResNet-50 ----

def make_resnet50(torch, shape):
    nn = torch.nn

    def conv(c_in, c_out, k=1, stride=1):
        return nn.Conv2d(c_in, c_out, k, stride, k // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, c_in, c, stride):
            super().__init__()
            self.conv1, self.bn1 = conv(c_in, c), nn.BatchNorm2d(c)
            self.conv2, self.bn2 = conv(c, c, 3, stride), nn.BatchNorm2d(c)
            self.conv3, self.bn3 = conv(c, 4 * c), nn.BatchNorm2d(4 * c)
            nn.init.constant_(self.bn3.weight, 0.25)  # rounding errors of blocks do not grow
            self.downsample = nn.Sequential(conv(c_in, 4 * c, 1, stride), nn.BatchNorm2d(4 * c)) \
                if c_in != 4 * c else None

        def forward(self, x):
            y = torch.relu(self.bn1(self.conv1(x)))
            y = torch.relu(self.bn2(self.conv2(y)))
            return torch.relu(self.bn3(self.conv3(y)) +
                              (self.downsample(x) if self.downsample else x))

    class ResNet(nn.Module):
        """Images come as [B, H, W, C], the order in memory that channels-last has."""

        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = conv(3, 64, 7, 2), nn.BatchNorm2d(64)
            self.pool, c_in = nn.MaxPool2d(3, 2, 1), 64
            for i, n_blocks in enumerate((3, 4, 6, 3)):
                blocks = []
                for k in range(n_blocks):
                    blocks.append(Block(c_in, 64 << i, 2 if i and not k else 1))
                    c_in = 256 << i
                setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
            self.fc = nn.Linear(c_in, 1000)

        def forward(self, x):
            y = self.pool(torch.relu(self.bn1(self.conv1(x.permute(0, 3, 1, 2)))))
            y = self.layer4(self.layer3(self.layer2(self.layer1(y))))
            return self.fc(y.mean((2, 3)))

    def calibrate(norm, inputs):
        """Statistics that bring values near 1. Random weights make channels of nearly equal values;
        to subtract all of their mean would leave rounding errors alone."""
        x, = inputs
        norm.running_mean.copy_(0.25 * x.mean((0, 2, 3)))
        norm.running_var.copy_((x - norm.running_mean[:, None, None]).square().mean((0, 2, 3)))
    model, hooks = ResNet().eval(), []
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm2d):
            hooks.append(module.register_forward_pre_hook(calibrate))
    model(torch.randn(2, *shape[1:]))
    for hook in hooks:
        hook.remove()
    return model.bfloat16()


# ---- transformer blocks ----

def split(x, width):
    """[B, T, heads * width] to [B, heads, T, width]."""
    return x.view(*x.shape[:2], -1, width).transpose(1, 2)


def attend(torch, q, k, v):
    """Causal; [B, heads, T, width] to [B, T, heads * width]."""
    a = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
    return a.transpose(1, 2).flatten(2)


def make_gpt2(torch, shape):
    nn, n = torch.nn, shape[-1]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(n), nn.LayerNorm(n)
            self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, n)
            self.up, self.down = nn.Linear(n, 4 * n), nn.Linear(4 * n, n)
            self.gelu = nn.GELU(approximate="tanh")

        def forward(self, x):
            q, k, v = (split(t, 64) for t in self.qkv(self.norm1(x)).split(n, 2))
            h = x + self.out(attend(torch, q, k, v))
            return h + self.down(self.gelu(self.up(self.norm2(h))))
    return with_unit_weights(torch, Block())


def make_llama(torch, shape, hidden=14336, width=128, key_heads=8):
    nn, n, tokens = torch.nn, shape[-1], shape[1]

    def linear(c_in, c_out):
        return nn.Linear(c_in, c_out, bias=False)

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(n))

        def forward(self, x):
            z = x if x.dtype == torch.float64 else x.float()
            scale = torch.rsqrt((z * z).mean(-1, keepdim=True) + 1e-5)
            return self.weight * (z * scale).to(x.dtype)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.q, self.k = linear(n, n), linear(n, key_heads * width)
            self.v, self.out = linear(n, key_heads * width), linear(n, n)
            self.gate, self.up, self.down = linear(n, hidden), linear(n, hidden), linear(hidden, n)
            angle = torch.arange(tokens)[:, None] * \
                500000.0 ** (torch.arange(0, width, 2) / -width)[None, :]
            self.register_buffer("cos", angle.cos())
            self.register_buffer("sin", angle.sin())

        def turn(self, x):
            return torch.cat(turned(lambda x: x, x, self.cos, self.sin), -1)

        def forward(self, x):
            z = self.norm1(x)
            q, k, v = (split(of(z), width) for of in (self.q, self.k, self.v))
            h = x + self.out(attend(torch, self.turn(q), self.turn(k), v))
            f = self.norm2(h)
            return h + self.down(nn.functional.silu(self.gate(f)) * self.up(f))
    return with_unit_weights(torch, Block())


def with_unit_weights(torch, model):
    """Products of values near 1 are near 1."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
            if module.bias is not None:
                torch.nn.init.normal_(module.bias)
    return model.bfloat16()


def resnet50(name, batch, take):
    build = network(make_resnet50, (batch, 224, 224, 3), 8.2e9 * batch, take=take)
    return Workload(f"{name}-{batch}", build, tolerance=4e-2, target=1.1, ptx_ms=1000,
                    peers=("eager", "compile"))


def block(name, make, batch, tokens, n, products):
    """`products`: elements of all its weights."""
    flops = 2.0 * batch * tokens * (products + tokens * n)
    return Workload(name, network(make, (batch, tokens, n), flops, ("cudnn", "flash")),
                    has_matmul=True, target=1.0, peers=("sdpa", "compile"))


TABLE = [
    resnet50("resnet50", 1, import_model),
    resnet50("resnet50", 128, import_model),
    resnet50("resnet50-example", 1, take_example),
    resnet50("resnet50-example", 128, take_example),
    block("gpt2-block", make_gpt2, 8, 1024, 768, 12 * 768 * 768),
    block("llama-block", make_llama, 1, 2048, 4096, 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336)),
]
