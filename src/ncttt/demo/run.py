"""All that `ncttt demo` does: train or take models, measure every method on shifted images, show a table and a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ncttt import benchmark, demo, report
from ncttt.base.errors import InputError
from ncttt.base.numbers import check_seed
from ncttt.benchmark.grid import Entry, Grid
from ncttt.data.corruptions import CLEAN
from ncttt.report import page
from ncttt.report.names import corruption_order, method_order, spelled
from ncttt.report.shares import shares_of_rows
from ncttt.report.table import Number, Table, average, table_of
from ncttt.zoo import names

EXAMPLES = 12  # images on the page
SHIFTS = ["gaussian_noise", "defocus_blur", "contrast"]
TRAINED = ("source", "ttt", "ttt_plus", "clust3", "ttt_flow", "nc_ttt")  # methods with a model of their own
PLAIN = ("source", "ptbn", "tent")  # and LAME: methods that take any classifier
Gains = tuple[float | None, float | None]


@dataclass(frozen=True)
class Demo:
    """What the demonstration gave: its rows, the table of methods, and the page."""

    rows: list[dict[str, Any]]
    table: report.Table
    page: Path


def run_demo(
    *,
    data: Literal["digits", "cifar10"] = "digits",
    pretrained: bool = False,
    epochs: int = 12,
    images: int = 500,
    seed: int = 0,
    root: str | None = None,
    out: str = "runs/demo",
    tell: Callable[[str], None] = lambda text: None,
) -> Demo:
    """Measure every method on shifted images, from models that begin alike; what is done in `out` is not done again.

    Args:
        data: digits, which come with the package, or cifar10 (first: ncttt data get cifar10) with the shipped models.
        pretrained: Take the shipped model of digits instead of training; methods with other branches are left out.
        epochs: Passes over the training digits; the model of each method then takes a quarter as many.
        images: Test images of each kind.
        seed: Of the weights, the order of images and the noise.
        root: Where CIFAR-10 lies.
        out: Folder for models, rows and the page.
        tell: Called with a line for each training.
    """
    if images < 1:  # asked before anything is trained
        raise InputError(f"images must be at least 1; found {images}")
    check_seed("seed", seed)
    if data == "cifar10":
        grid = demo.cifar10_grid(images, seed, root)
    elif pretrained:
        grid = demo.pretrained_grid(images, seed)
    else:
        grid = demo.digits_grid(demo.trained_models(out, epochs, seed, tell=tell), images, seed)
    with benchmark.Store(Path(out) / "rows.sqlite") as store:
        outcome = benchmark.run_grid(grid, store, predictions=True)
        benchmark.raise_failures(outcome.failures)
        rows = outcome.rows
        examples, verdicts = page.examples_of(store, rows, EXAMPLES), page.verdicts_of(store, rows)
    written = page.write_page(rows, out, title=f"Every method on shifted {data}", examples=examples, verdicts=verdicts)
    return Demo(rows, demo.demo_table(rows, rows[0]["checkpoint"]), written)


def digits_grid(models: Mapping[str, str], images: int, seed: int = 0) -> Grid:
    """Digits are drawn thick and without texture: only the constants for large images shift them visibly."""
    return _grid("digits", models, images, seed, severities=[3], constants="imagenet")


def pretrained_grid(images: int, seed: int = 0) -> Grid:
    """The model of digits that ships has NC-TTT's branch; methods without one run on it, too."""
    model = "digits-small-ncttt"
    return digits_grid({"source": model, "nc_ttt": model}, images, seed)


def cifar10_grid(images: int, seed: int = 0, root: str | None = None) -> Grid:
    """CIFAR-10 with the models that ship; a method without one is left out."""
    models = {method: f"cifar10-small-{method.replace('nc_', 'nc').replace('_', '-')}" for method in TRAINED}
    shipped = {method: model for method, model in models.items() if model in names()}
    return _grid("cifar10", shipped, images, seed, severities=[5], root=root)


def _grid(data: str, models: Mapping[str, str], images: int, seed: int, **more: Any) -> Grid:
    shown = {"corruptions": ["clean", *SHIFTS], "batch_sizes": [100], "seeds": [seed], "images": images}
    return Grid(data=data, methods=entries(models), **shown, **more)


def entries(models: Mapping[str, str]) -> list[Entry]:
    """Methods without a branch on the plain model, the others on their own."""
    plain = models["source"]
    every = list(dict.fromkeys(models.values()))
    still = [Entry(method=name, checkpoint=every if name != "tent" else plain) for name in PLAIN]
    lame = Entry(method="lame", settings={"affinity": "knn"}, checkpoint=plain)
    return [*still, lame, *(Entry(method=name, checkpoint=model) for name, model in models.items() if name != "source")]


def demo_table(rows: Sequence[Mapping[str, Any]], plain: str) -> Table:
    """Accuracies in percent; `plain` is the model that methods without a branch run on.

    A method with a model of its own has gained what it has over that very model, so its gains are not those over the
    first line.
    """
    corruptions = sorted({row["corruption"] for row in rows}, key=corruption_order)
    accuracy: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["method"] not in ("source", "ptbn") or row["checkpoint"] == plain:
            accuracy.setdefault(row["method"], {})[row["corruption"]] = 100 * row["accuracy"]
    means = {method: average(each[name] for name in corruptions if name != CLEAN) for method, each in accuracy.items()}
    gains: dict[str, Gains] = {share.method: (share.statistics, share.steps) for share in shares_of_rows(rows)}
    gains["ptbn"] = (means["ptbn"] - means["source"], None)
    headers = ["method", *map(spelled, corruptions), "mean of shifts", "statistics", "steps"]
    body = [
        [
            method,
            *(Number(accuracy[method][name], decimals=1) for name in corruptions),
            Number(means[method], decimals=1),
            *(
                None if gain is None else Number(gain, signed=True, decimals=1)
                for gain in gains.get(method, (None, None))
            ),
        ]
        for method in sorted(accuracy, key=method_order)
    ]
    return table_of(headers, body)
