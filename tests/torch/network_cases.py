"""Whole networks with random weights, and small programs of what an op alone does not have."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from op_cases import below, floats


class Network:
    """A model and its sets of inputs. The first set is the example for torch.export."""

    def __init__(self, model, *sets, dynamic_shapes=None, n_weights=None):
        self.model, self.sets, self.dynamic_shapes = model.eval(), sets, dynamic_shapes
        self.n_weights = n_weights  # that the translation stores; None: any number


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class TiedWords(nn.Module):
    """The next word, from the table of words for input and output alike."""

    def __init__(self, n_words=40, width=16):
        super().__init__()
        self.words, self.inner = nn.Embedding(n_words, width), nn.Linear(width, width)
        self.head = nn.Linear(width, n_words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.inner(self.words(ids))))


class ManyOutputs(nn.Module):
    """Outputs in a dict and a tuple, of several dtypes; one twice, one an input."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 6)

    def forward(self, x):
        y = self.linear(x)
        values, places = y.topk(2)
        return {"logits": y, "best": (values, places), "again": y, "input": x, "sum": y.sum()}


def image_network():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Hardswish(), nn.MaxPool2d(2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    nn.init.uniform_(model[1].running_mean)
    nn.init.uniform_(model[1].running_var, 0.5, 2)
    return model


def programs():
    """Pairs of a name and a function that makes the Network. Small, so that their translations may be stored."""
    batch, length = Dim("B", min=1, max=64), Dim("T", min=2, max=32)
    yield "dynamic_batch", lambda: Network(
        nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), [floats(2, 8)], [floats(5, 8)],
        dynamic_shapes=({0: batch},))
    yield "dynamic_encoder", lambda: Network(
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), [floats(3, 6, 16)], [floats(2, 9, 16)],
        dynamic_shapes=({0: batch, 1: length},))
    yield "dynamic_numbers", lambda: Network(
        Function(lambda x, k: (x * x.shape[0] + x.shape[0] % 4, torch.full((3,), x.shape[0] * 2), x[k, k % 8],
                               x.shape[0] - k, torch.select_scatter(x, x[0], 0, -1))),
        [floats(5, 8), torch.tensor([0, -2, 1])], [floats(9, 8), torch.tensor([-1, 8, 3])],
        dynamic_shapes=(({0: batch}, None),))
    yield "tied_weights", lambda: Network(TiedWords(), [below(40, 2, 7)], [below(40, 2, 7)], n_weights=3)
    yield "many_outputs", lambda: Network(ManyOutputs(), [floats(3, 8)], [floats(3, 8)])
    yield "image", lambda: Network(image_network(), [floats(2, 3, 16, 16)], [floats(2, 3, 16, 16)], n_weights=9)
    yield "recurrent", lambda: Network(nn.GRU(6, 8, batch_first=True), [floats(2, 4, 6)], [floats(2, 4, 6)])
    size = {0: batch, 2: Dim("H", min=8, max=64), 3: Dim("W", min=8, max=64)}
    yield "dynamic_images", lambda: Network(
        Function(lambda x: (
            F.interpolate(F.avg_pool2d(x, 2), size=x.shape[2:], mode="bilinear"),
            F.interpolate(F.avg_pool2d(x, 2), size=x.shape[2:], mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=(1.5, 2), mode="bilinear"),
            F.interpolate(x, scale_factor=0.75), F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=True),
            x.roll((3, -1), (2, 3)), x.roll(x.shape[2] // 2, 2), x.roll(5), x.flip(2, 0))),
        [floats(2, 2, 9, 12)], [floats(3, 2, 14, 8)], dynamic_shapes=((size,),))


def with_statistics(model, size):
    """Batch norms take the statistics of some images; with those that they begin with, the input fades away."""
    for norm in (m for m in model.modules() if isinstance(m, nn.BatchNorm2d)):
        norm.momentum = 1
    with torch.no_grad():
        model.train()(floats(4, 3, size, size))
    return model


def of_torchvision(models, name):
    if name == "vit_small":
        model = models.VisionTransformer(64, 16, 4, 4, 128, 256)
        nn.init.normal_(model.heads.head.weight, std=0.1)  # it begins as zeros, and so would the outputs
        return model
    return with_statistics(getattr(models, name)(weights=None), 64)


class FirstOutput(nn.Module):
    """A language model without a cache of keys and values: ids in, its first output out."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        model.config.use_cache = False

    def forward(self, ids):
        return self.model(input_ids=ids)[0]


def language_models():
    """Pairs of a name and a function that makes a model of `transformers`, of 2 layers of width 64 and 100 words."""
    import transformers as t

    common = {"vocab_size": 100, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    yield "BERT", lambda: t.BertModel(t.BertConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, **common))
    yield "GPT-2", lambda: t.GPT2LMHeadModel(t.GPT2Config(n_embd=64, n_layer=2, n_head=4, **common))
    yield "Llama", lambda: t.LlamaForCausalLM(t.LlamaConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128,
        **common))


def solved():
    """Programs whose inputs have no extent that is a dim of its own: `fusec run` solves them."""
    frames = 4 * Dim("T", min=1, max=16)
    yield "frames", lambda: Network(
        Function(lambda x: x.reshape(-1, 4, 6).mean(1)), [floats(12, 6)], [floats(20, 6)], dynamic_shapes=(({0: frames},),))


def networks():
    """Pairs of a name and a function that makes the Network."""
    yield "MLP", lambda: Network(nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)),
                                 [floats(8, 64)], [floats(8, 64)])
    yield "Transformer encoder", lambda: Network(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
                                                 [floats(2, 16, 64)], [floats(2, 16, 64)])
    import torchvision.models as models

    for name in ("resnet18 resnet50 densenet121 squeezenet1_1 shufflenet_v2_x0_5 regnet_y_400mf mobilenet_v3_small "
                 "efficientnet_b0 convnext_tiny swin_t vit_small").split():
        yield name, lambda name=name: Network(of_torchvision(models, name), [floats(1, 3, 64, 64)],
                                              [floats(1, 3, 64, 64)])
    for name, make in language_models():
        for kind, shapes in (("", None), (", dims B and T", ({0: Dim("B", min=1, max=64), 1: Dim("T", min=2, max=64)},))):
            yield name + kind, lambda make=make, shapes=shapes: Network(
                FirstOutput(make()), [below(100, 2, 12)], [below(100, 5, 7) if shapes else below(100, 2, 12)],
                dynamic_shapes=shapes)
