"""The optimizers that recipes and methods name; torch is loaded when one is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ncttt.base.errors import InputError, nearest

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

OptimizerFactory = Callable[..., "Optimizer"]
OPTIMIZERS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}  # the names of their classes in torch.optim


def make_optimizer(
    optimizer: str | OptimizerFactory, parameters: Iterable[nn.Parameter], lr: float, **settings: Any
) -> Optimizer:
    """An optimizer over parameters, by name or by a factory called as `factory(parameters, lr=lr)`."""
    from torch import optim  # not above: the help of the command line knows the names and does not wait for torch

    if callable(optimizer):
        return optimizer(parameters, lr=lr, **settings)
    if optimizer not in OPTIMIZERS:
        raise InputError(f"no optimizer {optimizer!r}{nearest(optimizer, OPTIMIZERS)}")
    return getattr(optim, OPTIMIZERS[optimizer])(parameters, lr=lr, **settings)
