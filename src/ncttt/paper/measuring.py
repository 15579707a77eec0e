"""The rows of a table: data provided, networks trained, cells measured; what is there already is not done again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ncttt.benchmark.driver import raise_failures, run_grid
from ncttt.benchmark.grid import Grid
from ncttt.benchmark.store import Store
from ncttt.model.norm import running
from ncttt.paper.items import Item
from ncttt.paper.needs import needs_of, provide
from ncttt.paper.plan import Column, Plan
from ncttt.paper.settings import Settings
from ncttt.paper.trainings import Training, train_missing, trainings

Tell = Callable[[str], None]
Row = dict[str, Any]


def columns_of(item: Item, plan: Plan) -> list[Column]:
    """What is measured for a table or a figure.

    Figure 6 has NC-TTT after several counts of iterations, with the statistics of its authors' code, and beside it the
    same statistics after as many passes without a gradient.
    """
    if item.figure is None:
        return plan.columns
    model = next(column.model for column in plan.columns if column.method == "nc_ttt")
    settings, steps = plan.iterations["settings"], plan.iterations["steps"]
    passes = [
        Column(method="ptbn", model=model, label=f"{count} passes", settings=_passes(count)) for count in steps if count
    ]
    return [Column(method="nc_ttt", model=model, settings=settings, steps=steps), *passes]


def _passes(count: int) -> dict[str, Any]:
    return {"norm": running(0.1, count)}


def trainings_of(item: Item, plan: Plan, settings: Settings) -> list[Training]:
    """The trainings behind a table or a figure."""
    models = list(dict.fromkeys(column.model for column in columns_of(item, plan)))
    return trainings(plan, models, settings.seeds_of(plan), settings.home, settings.root)


def grids_of(item: Item, plan: Plan, settings: Settings) -> list[Grid]:
    """A grid for each seed, on the models that were trained with it."""
    options = {"images": settings.images, "root": settings.root, "device": settings.device}
    columns = columns_of(item, plan)
    return [plan.grid(columns, item.severity, seed, settings.home, **options) for seed in settings.seeds_of(plan)]


def store_of(settings: Settings) -> Path:
    """Where the rows of a scale are kept."""
    return settings.home / "rows.sqlite"


def prepare(item: Item, plan: Plan, settings: Settings, tell: Tell) -> None:
    """Have the data, and train what is missing."""
    asked = trainings_of(item, plan, settings)
    provide(needs_of(plan, asked, settings.root), settings.root, tell)
    train_missing(asked, device=settings.device, running=settings.running, tell=tell)


def measured_rows(item: Item, plan: Plan, settings: Settings, tell: Tell) -> list[Row]:
    """The rows of a table or a figure; their checkpoints are the names of the plan's models, whatever their seed."""
    prepare(item, plan, settings, tell)
    rows: list[Row] = []
    running = {"executor": settings.executor, "workers": settings.workers, "address": settings.address}
    with Store(store_of(settings)) as store:
        for grid in grids_of(item, plan, settings):
            tell(f"measuring {item.name} on {grid.data}, {_origin(grid, plan)}")
            outcome = run_grid(grid, store, **running)
            raise_failures(outcome.failures)
            rows += outcome.rows
    return _named(rows, plan, settings)


def _origin(grid: Grid, plan: Plan) -> str:
    if plan.corruptions == ["clean"]:
        return "as it is"
    return "the published corrupted images" if grid.data == plan.published else "corrupted here"


def _named(rows: Sequence[Row], plan: Plan, settings: Settings) -> list[Row]:
    seeds = settings.seeds_of(plan)
    models = {plan.checkpoint(model, seed, settings.home): model for model in plan.models for seed in seeds}
    return [{**row, "checkpoint": models[row["checkpoint"]]} for row in rows]
