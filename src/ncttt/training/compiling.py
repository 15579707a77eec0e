"""torch.compile for a classifier that is tapped: its parts are compiled, and hooks run between them as ever."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ncttt.model.branched import Branched


@contextmanager
def compiled(model: Branched) -> Iterator[None]:
    """Let the classifier's parts run compiled inside the `with` block.

    The compiler would keep the hooks of its first call, and a tap's hooks live for one call. So what is compiled is
    the forward of every part that has no tapped layer inside it; a tapped layer's own hook runs outside its forward.
    """
    parts = list(_parts(model.classifier, model.layers))
    for part in parts:
        part.forward = torch.compile(part.forward)
    try:
        yield
    finally:
        for part in parts:
            del part.forward


def _parts(module: nn.Module, layers: tuple[str, ...], prefix: str = "") -> Iterator[nn.Module]:
    for name, child in module.named_children():
        path = f"{prefix}{name}"
        if any(layer.startswith(f"{path}.") for layer in layers):
            yield from _parts(child, layers, f"{path}.")
        elif any(True for _ in child.parameters()):
            yield child
