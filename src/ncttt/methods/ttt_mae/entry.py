"""Where images become tokens in a vision transformer, so that its encoder can be given the visible ones alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ncttt.methods.ttt_mae.patches import chosen
from ncttt.model.taps import find_layer


@dataclass(frozen=True)
class Entry:
    """A layer whose input are the embedded patches, positions included, and how they follow each other there.

    `others` tokens, such as a class token, come first and stand for no patch; then come `patches`, each of a square of
    `size` pixels, row by row.
    """

    layer: str
    others: int
    patches: int
    size: int

    @contextmanager
    def keeping(self, classifier: nn.Module, patches: Tensor) -> Iterator[None]:
        """Inside the `with` block, only these patches `(B, M)` of every image, and the other tokens, are encoded."""
        with replaced_input(classifier, self.layer, lambda tokens: self.kept(tokens, patches)):
            yield

    def kept(self, tokens: Tensor, patches: Tensor) -> Tensor:
        """Of tokens `(B, others + N, C)` the others and those of the patches: `(B, others + M, C)`."""
        return torch.cat([tokens[:, : self.others], chosen(tokens[:, self.others :], patches)], 1)


@contextmanager
def replaced_input(classifier: nn.Module, layer: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Change the tokens `(B, N, C)` that a layer is given, where it runs first, in the forward of the `with` block."""
    done: list[bool] = []

    def hook(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if done or not inputs or not isinstance(inputs[0], Tensor) or inputs[0].ndim != 3:
            return None
        done.append(True)
        return (change(inputs[0]), *inputs[1:])

    handle = find_layer(classifier, layer).register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()
