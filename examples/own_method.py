"""A method of one's own in one file: entropy minimisation over the scale and shift of normalisation layers.

    python examples/own_method.py

Every method is a frozen dataclass that overrides what it needs; `Adapter` does the rest, and `check_method` tells
whether it keeps the contract. In a module that can be imported it is known by its address, as in
`ncttt adapt --method own_method:Confident`.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

import ncttt


@dataclass(frozen=True, kw_only=True)
class Confident(ncttt.Method):
    """Lower the mean entropy of the predictions, with batch statistics."""

    name: ClassVar[str] = "confident"
    learns: ClassVar[bool] = True
    steps: int = 3
    lr: float = 1e-2
    norm: str = "batch"

    def parameters(self, model: ncttt.Branched) -> dict[str, nn.Parameter]:
        return model.norm_parameters()

    def adaptation_loss(self, model: ncttt.Branched, images: Tensor) -> ncttt.Objective:
        log_probabilities = model(images).log_softmax(1)
        return ncttt.Objective(-(log_probabilities.exp() * log_probabilities).sum(1).mean())


def main() -> ncttt.Trace:
    """Check the method, adapt a small network with random weights to random images and show that its entropy falls."""
    ncttt.testing.check_method(Confident)
    torch.manual_seed(0)
    adapter = ncttt.Adapter(ncttt.models.small(num_classes=10), Confident())
    adapter(torch.rand(16, 3, 32, 32))
    print(adapter.trace)
    return adapter.trace


if __name__ == "__main__":
    main()
