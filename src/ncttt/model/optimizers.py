"""The optimizers that methods name."""

from collections.abc import Callable, Iterable

import torch
from torch import nn

from ncttt.base.errors import InputError, nearest

OptimizerFactory = Callable[..., torch.optim.Optimizer]
OPTIMIZERS: dict[str, OptimizerFactory] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


def make_optimizer(
    optimizer: str | OptimizerFactory, parameters: Iterable[nn.Parameter], lr: float
) -> torch.optim.Optimizer:
    """An optimizer over parameters, by name or by a factory called as `factory(parameters, lr=lr)`."""
    if callable(optimizer):
        return optimizer(parameters, lr=lr)
    if optimizer not in OPTIMIZERS:
        raise InputError(f"no optimizer {optimizer!r}{nearest(optimizer, OPTIMIZERS)}")
    return OPTIMIZERS[optimizer](parameters, lr=lr)
