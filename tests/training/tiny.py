"""Trainings that take a second."""

from collections.abc import Callable

import torch

import ncttt
from ncttt.data import ImageSet, load
from ncttt.training import Observer

QUIET: list[Observer] = []


def model(seed: int = 0, **method: object) -> ncttt.Branched:
    torch.manual_seed(seed)
    net = ncttt.models.small(num_classes=10, width=4)
    example = torch.rand(2, 3, 32, 32)
    return ncttt.attach(net, "layer2", ncttt.NCTTT(hidden=32, channels=8, **method), example)


def digits(count: int = 160) -> ImageSet:
    return load("digits", "fit").subset(range(count))


def same_weights(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


class At(Observer):
    """Does something after a given step."""

    def __init__(self, step: int, action: Callable[[], None]):
        self.wanted, self.action = step, action

    def step(self, step: int, metrics: torch.Tensor, images: int) -> None:
        if step == self.wanted:
            self.action()
