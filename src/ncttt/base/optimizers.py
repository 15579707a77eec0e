"""The optimizers that recipes and methods name; torch is loaded when one is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from ncttt.base.errors import InputError, nearest

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

OptimizerFactory = Callable[..., "Optimizer"]
OPTIMIZERS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}  # the names of their classes in torch.optim
# Names for methods alone, which have no settings of an optimizer beside its rate.
MOMENTA: dict[str, dict[str, Any]] = {"momentum": {"momentum": 0.9}, "nesterov": {"momentum": 0.9, "nesterov": True}}


def check_optimizer(name: str) -> None:
    """Raise an `InputError` unless a method can name its optimizer so.

    >>> for name in ("adam", "momentum"):
    ...     check_optimizer(name)
    """
    if name not in OPTIMIZERS and name not in MOMENTA:
        raise InputError(f"no optimizer {name!r}{nearest(str(name), [*OPTIMIZERS, *MOMENTA])}")


def make_optimizer(
    optimizer: str | OptimizerFactory, parameters: Iterable[nn.Parameter], lr: float, **settings: Any
) -> Optimizer:
    """An optimizer over parameters, by name or by a factory called as `factory(parameters, lr=lr)`.

    `momentum` and `nesterov` are SGD with a momentum of 0.9.
    """
    from torch import optim  # not above: the help of the command line knows the names and does not wait for torch

    if callable(optimizer):
        return optimizer(parameters, lr=lr, **settings)
    check_optimizer(optimizer)
    if optimizer in MOMENTA:
        return optim.SGD(parameters, lr=lr, **MOMENTA[optimizer], **settings)
    return getattr(optim, OPTIMIZERS[optimizer])(parameters, lr=lr, **settings)


def check_history(history: Any, optimizer: Optimizer | None, where: str) -> None:
    """Raise an `InputError` unless the optimizer can go on from this history, an entry for each of its parameters.

    A copy of it tries: it takes the history over and makes a step without a gradient, which must leave finite numbers.
    """
    shapes = [] if optimizer is None else [tuple(part.shape) for part in _parameters(optimizer)]
    entries: list[tuple[Any, Any]] = list(history.items()) if isinstance(history, Mapping) else [(None, history)]
    for index, entry in entries:
        known = type(index) is int and 0 <= index < len(shapes) and isinstance(entry, Mapping)
        tensors = [part for part in entry.values() if hasattr(part, "shape")] if known else []
        if not known or any(part.ndim and tuple(part.shape) != shapes[index] for part in tensors):
            raise InputError(f"{where} remembers other parameters than it has here; see {index!r:.40}")
        if any(not part.is_floating_point() or not bool(part.isfinite().all()) for part in tensors):
            raise InputError(f"{where} remembers numbers of parameter {index} that are not real and finite")
    if entries and optimizer is not None:
        _try_step(deepcopy(history), deepcopy(optimizer), where)


def _try_step(history: Any, optimizer: Optimizer, where: str) -> None:
    from torch import zeros_like  # as above

    groups = optimizer.state_dict()["param_groups"]
    try:
        optimizer.load_state_dict({"state": history, "param_groups": groups})
        for parameter in _parameters(optimizer):
            parameter.grad = zeros_like(parameter)
        optimizer.step()
    except Exception as error:  # of an optimizer that may be anybody's
        reason = next(iter(str(error).splitlines()), "")
        raise InputError(f"{where} cannot be gone on with: {type(error).__name__}: {reason}") from None
    if not all(bool(parameter.isfinite().all()) for parameter in _parameters(optimizer)):
        raise InputError(f"{where} cannot be gone on with: a step without a gradient gives numbers that are not finite")


def _parameters(optimizer: Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
