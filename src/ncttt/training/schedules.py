"""Learning rates as a share of their peak, functions of progress alone, so that a resumed training needs no state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncttt.training.recipe import Recipe


def one_cycle(progress: float, warmup: float = 0.2) -> float:
    """Up in a line during `warmup`, down to zero along a cosine; `progress` goes from 0 to 1.

    >>> [round(one_cycle(t), 2) for t in (0, 0.1, 0.2, 0.6, 1)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if progress < warmup:
        return progress / warmup
    return 0.5 + 0.5 * math.cos(math.pi * (progress - warmup) / (1 - warmup))


def peak(rise: float, least: int) -> float:
    """The share of its highest rate that a classifier may reach by a rise of so many steps: all of it from `least` on.

    BatchNorm follows the weights over tens of steps. A steep rise to the full rate throws the weights too far for a
    short training to recover, so a rise of fewer steps is gentler, too.

    >>> [round(peak(steps, least=50), 2) for steps in (5, 20, 50, 500)], peak(1, least=0)
    ([0.03, 0.25, 1.0, 1.0], 1.0)
    """
    return 1.0 if rise >= least else (rise / least) ** 1.5


def multi_step(epoch: float, milestones: Sequence[int], gamma: float = 0.1) -> float:
    """Lowered by the factor `gamma` after each milestone.

    >>> [round(multi_step(epoch, (150, 250)), 3) for epoch in (149.9, 150, 250)]
    [1.0, 0.1, 0.01]
    """
    return gamma ** sum(epoch >= milestone for milestone in milestones)


# What a recipe's schedule gives when a share of the training, from 0 to 1, is done.
SCHEDULES: dict[str, Callable[[Recipe, float], float]] = {
    "one_cycle": lambda recipe, progress: one_cycle(progress, recipe.warmup),
    "cosine": lambda recipe, progress: one_cycle(progress, warmup=0.0),
    "multi_step": lambda recipe, progress: multi_step(progress * recipe.epochs, recipe.milestones, recipe.gamma),
    "constant": lambda recipe, progress: 1.0,
}


def factor(recipe: Recipe, progress: float) -> float:
    """The share of the peak rate when `progress` of the training is done."""
    return SCHEDULES[recipe.schedule](recipe, progress)


def highest_rate(recipe: Recipe, steps: int) -> float:
    """The highest learning rate of the classifier in a training of so many steps."""
    if recipe.schedule != "one_cycle":
        return recipe.lr
    return recipe.lr * peak(recipe.warmup * steps, recipe.warmup_steps)
