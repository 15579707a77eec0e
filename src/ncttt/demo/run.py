"""All that `ncttt demo` does: train or take models, measure every method on shifted images, put it into a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ncttt import benchmark, demo, report
from ncttt.base.errors import InputError
from ncttt.report import page

EXAMPLES = 12  # images on the page


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
