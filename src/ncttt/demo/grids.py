"""The grids of the demonstration: clean images and the shifts of a setup, each method on a model that it can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncttt.benchmark.grid import Entry, Grid
from ncttt.data.corruptions import CLEAN
from ncttt.demo.setups import BATCH, SETUPS
from ncttt.zoo import names

TRAINED = ("source", "ttt", "ttt_plus", "clust3", "ttt_flow", "nc_ttt")  # methods with a model of their own
PLAIN = ("source", "ptbn", "tent")  # and LAME: those of the paper that take any classifier


def digits_grid(models: Mapping[str, str], images: int, seed: int = 0) -> Grid:
    """Digits with a model for each method that trains."""
    return _grid("digits", models, images, seed)


def pretrained_grid(images: int, seed: int = 0) -> Grid:
    """The model of digits that ships has NC-TTT's branch; methods without one run on it, too."""
    model = SETUPS["digits"].model
    return digits_grid({"source": model, "nc_ttt": model}, images, seed)


def cifar10_grid(images: int, seed: int = 0, root: str | None = None) -> Grid:
    """CIFAR-10 with the models that ship; a method without one is left out."""
    models = {method: f"cifar10-small-{method.replace('nc_', 'nc').replace('_', '-')}" for method in TRAINED}
    shipped = {method: model for method, model in models.items() if model in names()}
    return _grid("cifar10", shipped, images, seed, root=root)


def entries(models: Mapping[str, str]) -> list[Entry]:
    """Methods without a branch on the plain model, the others on their own."""
    plain = models["source"]
    every = list(dict.fromkeys(models.values()))
    still = [Entry(method=name, checkpoint=every if name != "tent" else plain) for name in PLAIN]
    lame = Entry(method="lame", settings={"affinity": "knn"}, checkpoint=plain)
    return [*still, lame, *(Entry(method=name, checkpoint=model) for name, model in models.items() if name != "source")]


def _grid(data: str, models: Mapping[str, str], images: int, seed: int, **more: Any) -> Grid:
    setup = SETUPS[data]
    return Grid(
        data=data,
        methods=entries(models),
        corruptions=[CLEAN, *setup.shifts],
        severities=[setup.severity],
        constants=setup.constants,
        batch_sizes=[min(BATCH, images)],
        seeds=[seed],
        images=images,
        **more,
    )
