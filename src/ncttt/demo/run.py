"""All that `ncttt demo` does: a drifting stream, every method on the same shifts, a table, a verdict and a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ncttt import benchmark, demo, report
from ncttt import data as data_sets
from ncttt.base.errors import InputError
from ncttt.base.numbers import check_seed
from ncttt.benchmark.grid import Grid
from ncttt.demo.setups import BATCH
from ncttt.report import page

EXAMPLES = 12  # images on the page
# A DriftRecord and a DemoStream: the help reads these types, and must not wait for torch.
Record = Stream = Any


@dataclass(frozen=True)
class Demo:
    """What the demonstration gave: records of the stream, rows, the table of methods, a verdict and the page."""

    records: list[Record]
    rows: list[dict[str, Any]]
    table: report.Table
    verdict: str
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
    watch: Callable[[Stream], list[Record]] = list,
) -> Demo:
    """Show a drifting stream to a model, then compare every method; what is done in `out` is not done again.

    Args:
        data: digits, which come with the package, or cifar10 (first: ncttt data get cifar10) with the shipped models.
            The shifts of digits were chosen on validation images, where methods differ most (study/demo_shifts.py).
        pretrained: Take the shipped model of digits instead of training; methods with other branches are left out.
        epochs: Passes over the training digits; the model of each method then takes a quarter as many.
        images: Test images of each kind.
        seed: Of the weights, the order of images and the noise.
        root: Where CIFAR-10 lies.
        out: Folder for models, rows and the page.
        tell: Called with a line for each stage and training.
        watch: Called with the `DemoStream`, to iterate over it and return its records.
    """
    for name, value in {"images": images, "epochs": epochs}.items():  # asked before anything is shown
        if value < 1:
            raise InputError(f"{name} must be positive; found {value}")
    check_seed("seed", seed)
    records = watch(demo.demo_stream(data, images, seed, root))
    tell(demo.finding(records))
    grid = _grid(data, pretrained, epochs, images, seed, root, out, tell)
    with benchmark.Store(Path(out) / "rows.sqlite") as store:
        tell("Every method on clean and on shifted images:")
        outcome = benchmark.run_grid(grid, store, predictions=True)
        benchmark.raise_failures(outcome.failures)
        rows, plain = outcome.rows, outcome.rows[0]["checkpoint"]
        found: dict[str, Any] = {
            "examples": page.examples_of(store, rows, EXAMPLES),
            "shifts": page.shifts_of(store, rows),
            "streams": page.streams_of(store, rows),
            "verdicts": page.verdicts_of(store, rows),
        }
        verdict = demo.verdict(store, rows, plain)
    written = page.write_page(rows, out, title=f"Every method on shifted {data}", **found)
    tell("The time of every method:")
    times = demo.relative_times(grid, _batch(data, root))
    return Demo(records, rows, demo.demo_table(rows, plain, times), verdict, written)


def _grid(
    data: str,
    pretrained: bool,
    epochs: int,
    images: int,
    seed: int,
    root: str | None,
    out: str,
    tell: Callable[[str], None],
) -> Grid:
    if data == "cifar10":
        return demo.cifar10_grid(images, seed, root)
    if pretrained:
        return demo.pretrained_grid(images, seed)
    return demo.digits_grid(demo.trained_models(out, epochs, seed, tell=tell), images, seed)


def _batch(data: str, root: str | None) -> Any:
    """A batch to time methods with: what images show does not change their cost."""
    return next(iter(data_sets.batches(data_sets.load(data, "val", root=root), BATCH)))[0]
