"""Networks of torchvision, timm, transformers and diffusers with random weights, and trained pipelines of scikit-learn.

Every case is exported to ONNX into a folder. Images are f32[1, 3, 64, 64], and language models have 2 layers of width
64, so that all of them take minutes.
"""
import os
import sys

import numpy as np
import onnx
import torch
from torch import nn
from torch.export import Dim

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
from network_cases import FirstOutput, Function, image_network, language_models, of_torchvision
from op_cases import below, floats


class Case:
    """`export(path)` writes the model; `sets` are lists of arrays, one for each input."""

    def __init__(self, name, export, sets):
        self.name, self.export, self.sets = name, export, sets


def of_torch(name, make, *sets, dtype=torch.float32, dynamic_shapes=None):
    """A module by PyTorch's own exporter; floats of the sets are made `dtype`."""
    sets = [[t.to(dtype) if t.is_floating_point() else t for t in args] for args in sets]

    def export(path):
        model = make().eval().to(dtype)
        with torch.no_grad():
            program = torch.onnx.export(model, tuple(sets[0]), dynamo=True, dynamic_shapes=dynamic_shapes, verbose=False)
        program.save(path, external_data=False)

    return Case(name, export, [[t.numpy() for t in args] for args in sets])


class UNet(nn.Module):
    """The convolutional network of Ronneberger et al.: half the size twice, and back, with what was there beside it."""

    def __init__(self, width=16):
        super().__init__()

        def block(n_in, n_out):
            return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(),
                                 nn.Conv2d(n_out, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU())

        self.down = nn.ModuleList([block(3, width), block(width, 2 * width), block(2 * width, 4 * width)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2),
                                 nn.ConvTranspose2d(2 * width, width, 2, stride=2)])
        self.after = nn.ModuleList([block(4 * width, 2 * width), block(2 * width, width)])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(x))
            x = nn.functional.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for up, after in zip(self.up, self.after):
            x = after(torch.cat([kept.pop(), up(x)], 1))
        return self.last(x)


def image_networks():
    """Names of networks, and functions that make them."""
    import timm
    import torchvision.models as models

    for name in ("resnet18 resnet50 densenet121 mobilenet_v3_small mobilenet_v3_large efficientnet_b0 convnext_tiny "
                 "swin_t vit_small").split():
        yield f"torchvision {name}", lambda name=name: of_torchvision(models, name)
    for name in "resnetv2_50 deit_tiny_patch16_224 efficientformerv2_s0 ghostnet_100 mobilevit_xxs".split():
        size = {"img_size": 64} if "deit" in name or "former" in name else {}
        yield f"timm {name}", lambda name=name, size=size: timm.create_model(name, pretrained=False, **size)
    yield "U-Net", UNet


def vit(model):
    nn.init.normal_(model.heads.head.weight, std=0.1)  # it begins as zeros, and so would the outputs
    return model


def whisper_encoder(width=64):
    import transformers as t

    model = t.WhisperModel(t.WhisperConfig(
        d_model=width, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=2 * width, decoder_layers=1,
        decoder_attention_heads=4, decoder_ffn_dim=2 * width, num_mel_bins=40, max_source_positions=50, vocab_size=100,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1))
    return Function(lambda x, encoder=model.encoder: encoder(x)[0])


def diffusion_unet():
    import diffusers

    model = diffusers.UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32, attention_head_dim=8, norm_num_groups=8)
    return Function(lambda x, step, words, model=model: model(x, step, words, return_dict=False)[0])


def other_networks():
    """Names, functions that make the networks, and functions that make their inputs."""
    yield "Whisper's encoder", whisper_encoder, lambda: [floats(1, 40, 100)]
    yield "diffusion U-Net", diffusion_unet, lambda: [floats(1, 4, 16, 16), torch.tensor([7]), floats(1, 6, 32)]


def pipelines():
    """Names of scikit-learn's pipelines, and functions that train them with x: f32[200, 6] and labels."""
    from sklearn import cluster, decomposition, ensemble, linear_model, neural_network, preprocessing, svm, tree
    from sklearn.pipeline import make_pipeline, make_union

    scale = preprocessing.StandardScaler
    yield "linear regression", lambda: make_pipeline(scale(), linear_model.Ridge())
    yield "scaled PCA", lambda: make_pipeline(preprocessing.MinMaxScaler(), decomposition.PCA(3))
    yield "union of features", lambda: make_union(scale(), preprocessing.PolynomialFeatures(2))
    yield "MLP regression", lambda: make_pipeline(scale(), neural_network.MLPRegressor(hidden_layer_sizes=(16, 8), max_iter=100))
    yield "logistic regression", lambda: make_pipeline(scale(), linear_model.LogisticRegression())
    yield "MLP classification", lambda: make_pipeline(scale(), neural_network.MLPClassifier(hidden_layer_sizes=(16,), max_iter=100))
    yield "decision tree", lambda: make_pipeline(scale(), tree.DecisionTreeRegressor())
    yield "random forest regression", lambda: ensemble.RandomForestRegressor(20, random_state=1)
    yield "random forest classification", lambda: ensemble.RandomForestClassifier(20, random_state=1)
    yield "extra trees classification", lambda: ensemble.ExtraTreesClassifier(20, random_state=1)
    yield "gradient boosting regression", lambda: ensemble.GradientBoostingRegressor(n_estimators=20)
    yield "gradient boosting classification", lambda: ensemble.GradientBoostingClassifier(n_estimators=20)
    yield "SVM of three classes", lambda: svm.SVC()
    yield "SVM regression", lambda: svm.SVR(kernel="poly")
    yield "SVM of one class", lambda: svm.OneClassSVM(kernel="sigmoid")
    yield "isolation forest", lambda: ensemble.IsolationForest(n_estimators=2, random_state=1)
    yield "bins", lambda: preprocessing.KBinsDiscretizer(3, encode="onehot-dense")
    yield "normalized k-means", lambda: make_pipeline(preprocessing.Normalizer(), cluster.KMeans(4, n_init=2))


def more_pipelines():
    """Pipelines that are not stored."""
    from sklearn import discriminant_analysis, gaussian_process, mixture, neighbors, svm

    for kernel in "linear rbf poly sigmoid".split():
        yield f"SVM classification {kernel}", lambda kernel=kernel: svm.SVC(kernel=kernel)
        yield f"SVM regression {kernel}", lambda kernel=kernel: svm.SVR(kernel=kernel)
    yield "nearest neighbours", lambda: neighbors.KNeighborsClassifier(3)
    yield "nearest neighbours regression", lambda: neighbors.KNeighborsRegressor(3)
    yield "outliers among neighbours", lambda: neighbors.LocalOutlierFactor(novelty=True)
    yield "Gaussian process", lambda: gaussian_process.GaussianProcessRegressor()
    yield "Gaussian mixture", lambda: mixture.GaussianMixture(2, random_state=1)
    yield "quadratic discriminants", lambda: discriminant_analysis.QuadraticDiscriminantAnalysis()


def of_sklearn(name, make):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    y = np.digitize(x @ rng.normal(size=6).astype(np.float32), [-1, 1] if "three classes" in name else [0])

    def export(path):
        import skl2onnx
        from skl2onnx.common.data_types import FloatTensorType
        from sklearn.base import is_classifier

        model = make()
        model.fit(x, y.astype(np.int64) if is_classifier(model) else x @ np.ones(6, np.float32))
        options = {id(model): {"zipmap": False}} if is_classifier(model) else None
        onnx.save(skl2onnx.convert_sklearn(model, initial_types=[("x", FloatTensorType([None, 6]))], options=options,
                                           target_opset={"": 18, "ai.onnx.ml": 3}), path)

    return Case(f"scikit-learn {name}", export, [[x[:16]], [x[16:21]]])


def tree_of_every_mode():
    """A tree whose tests are of every mode, with NaN among the features, which goes either way."""
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    n, size = len(modes), 2 * len(modes) + 1
    nodes = {"nodes_treeids": [0] * size, "nodes_nodeids": list(range(size)), "nodes_modes": modes + ["LEAF"] * (n + 1),
             "nodes_featureids": [0, 1, 0, 1, 0, 1] + [0] * (n + 1), "nodes_values": [1., 2., -2., -1., -0., 1.] + [0.] * (n + 1),
             "nodes_truenodeids": list(range(1, n)) + [size - 1] + [0] * (n + 1),
             "nodes_falsenodeids": list(range(n, size - 1)) + [0] * (n + 1),
             "nodes_missing_value_tracks_true": [1, 0, 0, 1, 1, 0] + [0] * (n + 1)}
    leaves = list(range(n, size))
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, target_treeids=[0] * len(leaves),
        target_nodeids=leaves, target_ids=[0] * len(leaves), target_weights=[float(k + 1) for k in range(len(leaves))], **nodes)
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([node], "trees", [info("x", 1, ["N", 2])], [info("y", 1, ["N", 1])])
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    values = np.array([np.nan, -3, -2, -1, -0., 0, 1, 2], np.float32)
    x = np.stack(np.meshgrid(values, values), -1).reshape(-1, 2)
    return Case("tree of every mode", lambda path: onnx.save(
        onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), path), [[x], [x[::-1].copy()]])


def resampling():
    """Scales that no f64 product gives the extents of, and places whose neighbours lie beyond the borders."""
    nodes = [onnx.helper.make_node("Resize", ["x", "", "scales"], [mode], mode=mode, coordinate_transformation_mode=places)
             for mode, places in (("nearest", "asymmetric"), ("linear", "pytorch_half_pixel"), ("cubic", "half_pixel"))]
    nodes += [onnx.helper.make_node("GridSample", ["x", "at"], [border], mode="cubic", padding_mode=border)
              for border in ("zeros", "border", "reflection")]
    info, at = onnx.helper.make_tensor_value_info, torch.rand(1, 3, 4, 2) * 4 - 2
    graph = onnx.helper.make_graph(
        nodes, "resampling", [info("x", 1, [1, 2, 10, 5]), info("at", 1, at.shape)],
        [info(node.output[0], 1, None) for node in nodes], [onnx.numpy_helper.from_array(np.array([1, 1, .7, 2.6], np.float32), "scales")])
    return Case("resampling", lambda path: onnx.save(onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9), path), [[floats(1, 2, 10, 5).numpy(), at.numpy()]])


def small():
    """Names and functions that make Cases of less than 1 MB, which `make test` runs."""
    import transformers as t
    from torchvision.models import convnext, swin_transformer, vision_transformer

    words = {"vocab_size": 40, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    image, ids = [floats(1, 3, 32, 32)], [below(40, 2, 7)]
    pair = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64, **words}
    yield of_torch("convnext", lambda: convnext.ConvNeXt(
        [convnext.CNBlockConfig(16, 32, 1), convnext.CNBlockConfig(32, None, 1)], num_classes=10, layer_scale=0.5), image)
    yield of_torch("swin", lambda: swin_transformer.SwinTransformer([4, 4], 16, [2], [2], [4, 4], num_classes=10), image)
    yield of_torch("vit", lambda: vit(vision_transformer.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)), image)
    yield of_torch("unet", lambda: UNet(4), image)
    yield of_torch("image_classifier", image_network, [floats(2, 3, 16, 16)])
    yield of_torch("bert", lambda: FirstOutput(t.BertModel(t.BertConfig(max_position_embeddings=32, **pair))), ids)
    yield of_torch("gpt2", lambda: FirstOutput(t.GPT2LMHeadModel(
        t.GPT2Config(n_embd=32, n_layer=1, n_head=4, n_positions=32, **words))), ids)
    yield of_torch("llama", lambda: FirstOutput(t.LlamaForCausalLM(t.LlamaConfig(num_key_value_heads=2, **pair))), ids)
    yield of_torch("whisper_encoder", lambda: whisper_encoder(32), [floats(1, 40, 100)])
    yield tree_of_every_mode()
    yield resampling()
    for name, make in pipelines():
        yield of_sklearn(name, make)


def cases():
    batch, length = Dim("B", min=1, max=64), Dim("T", min=2, max=64)
    for name, make in image_networks():
        yield of_torch(name, make, [floats(1, 3, 64, 64)])
    for name, make in language_models():
        model = lambda make=make: FirstOutput(make())
        yield of_torch(name, model, [below(100, 2, 12)])
        yield of_torch(f"{name}, dims B and T", model, [below(100, 2, 12)], [below(100, 5, 7)],
                       dynamic_shapes=({0: batch, 1: length},))
    for name, make, inputs in other_networks():
        yield of_torch(name, make, inputs())
    for name, make in [*pipelines(), *more_pipelines()]:
        yield of_sklearn(name, make)
    yield tree_of_every_mode()
    yield resampling()
    yield of_torch("torchvision resnet18, f16", dict(image_networks())["torchvision resnet18"], [floats(1, 3, 64, 64)],
                   dtype=torch.float16)
    for dtype, word in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
        for name, make in language_models():
            yield of_torch(f"{name}, {word}", lambda make=make: FirstOutput(make()), [below(100, 2, 12)], dtype=dtype)
