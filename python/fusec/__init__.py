"""PyTorch models as programs of the graph language: `from_torch(model, args)` writes one, and C runs it."""


def from_torch(model, args, kwargs=None, dynamic_shapes=None, name="model"):
    """The Program that `model(*args, **kwargs)` computes; `.save("model.g")` writes it with its weights beside it."""
    from fusec import torch as front

    return front.translate(model, args, kwargs, dynamic_shapes, name)
