"""What a method's gain is made of: ONE checkpoint with source statistics, batch statistics, a blend, and the steps.

statistics + steps = total, on the same images: statistics is what batch statistics give over the source's, steps what
the gradient steps give over batch statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.csv_files import write_csv
from ncttt.base.errors import InputError
from ncttt.base.provenance import origin
from ncttt.benchmark import executors
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of, checkpoints_of, method_of
from ncttt.benchmark.driver import Failures, run_cells
from ncttt.benchmark.grid import BLEND, Entry, Grid
from ncttt.benchmark.intervals import Difference, mean_difference, paired_difference
from ncttt.benchmark.right_streams import by_seed
from ncttt.benchmark.rows import ONLY_ATTRIBUTION
from ncttt.benchmark.store import Store
from ncttt.methods import METHODS, Method
from ncttt.zoo.stored import description

GAINS = ("statistics", "steps", "total")


@dataclass(frozen=True)
class Subject:
    """A method on a checkpoint, and how it was run."""

    method: str
    checkpoint: str
    data: str
    protocol: str
    severity: int
    order: str
    batch_size: int


@dataclass(frozen=True)
class Attribution:
    """Accuracies of a subject's variants, mean over corruptions and seeds, and the shares of its gain."""

    subject: Subject
    accuracy: dict[str, float]
    statistics: Difference
    steps: Difference
    total: Difference


@dataclass(frozen=True)
class AttributionOutcome:
    """The shares of all methods whose cells are finished, and why other cells failed."""

    attributions: list[Attribution]
    failures: Failures


@dataclass(frozen=True)
class Plan:
    """The cells of a subject's variants, each in the same order of corruptions and seeds."""

    subject: Subject
    variants: dict[str, list[Cell]]

    def cells(self) -> list[Cell]:
        """All of them."""
        return [cell for cells in self.variants.values() for cell in cells]


def attribute(
    grid: Grid,
    store: Store,
    *,
    blend: str = BLEND,
    executor: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    cache: str | Path | None = None,
    force: bool = False,
    progress: bool = True,
) -> AttributionOutcome:
    """Measure the variants of each method of the grid that learns, as `run_grid` would, and divide its gain."""
    chosen = plans(grid, blend)
    cells = list({cell.key: cell for plan in chosen for cell in plan.cells()}.values())  # some are of several plans
    runs_on = executors.executor(executor, grid.threads, workers, address, grid.device)
    failures = run_cells(cells, store, runs_on, force=force, predictions=True, cache=cache, progress=progress).failures
    failed = {cell.key for cell, _ in failures}
    whole = [plan for plan in chosen if failed.isdisjoint(cell.key for cell in plan.cells())]
    return AttributionOutcome([divided(plan, store) for plan in whole], failures)


def plans(grid: Grid, blend: str = BLEND) -> list[Plan]:
    """Five variants for each method of the grid that learns; the others have nothing to divide."""
    cells_of(grid)  # refuses entries that contradict each other
    variants: dict[Subject, dict[str, list[Cell]]] = {}
    for entry in grid.entries:
        if not METHODS.find(entry.method).learns:
            continue
        for checkpoint in checkpoints_of(entry):
            for name, variant in _variants(replace(entry, checkpoint=checkpoint), blend).items():
                for cell in cells_of(replace(grid, methods=[variant])):
                    own = variants.setdefault(_subject(entry.label or entry.method, cell), {})
                    own.setdefault(name, []).append(cell)
    if not variants:
        raise InputError("no method of this grid learns at test time, so there are no steps to tell apart")
    return [Plan(subject, own) for subject, own in variants.items()]


def divided(plan: Plan, store: Store) -> Attribution:
    """Divide the gain, with intervals; all cells of the plan must be in the store."""
    right = {name: by_seed(cells, store) for name, cells in plan.variants.items()}
    first = plan.cells()[0]

    def gain(better: str, base: str) -> Difference:
        pairs = zip(right[better].values(), right[base].values(), strict=True)
        return mean_difference(
            [paired_difference(one, two, first.batch_size, remembers=first.remembers) for one, two in pairs]
        )

    return Attribution(
        plan.subject,
        {
            name: float(np.mean([stream.mean() for streams in seeds.values() for stream in streams]))
            for name, seeds in right.items()
        },
        statistics=gain("batch", "source"),
        steps=gain("batch + steps", "batch"),
        total=gain("batch + steps", "source"),
    )


def attributions_json(attributions: Sequence[Attribution]) -> list[dict[str, Any]]:
    """Shares as JSON values."""
    return [
        {
            **asdict(attribution.subject),
            "accuracy": attribution.accuracy,
            **{name: getattr(attribution, name).as_json() for name in GAINS},
        }
        for attribution in attributions
    ]


def write_attributions(attributions: Sequence[Attribution], path: str | Path) -> None:
    """Shares as CSV, a line for each method on a checkpoint, with the machine that measured them."""
    lines = []
    for attribution in attributions:
        gains = {name: getattr(attribution, name).as_json() for name in GAINS}
        means = {name: gain["mean"] for name, gain in gains.items()}
        bounds = {f"{name} {bound}": gains[name][bound] for name in GAINS for bound in ("low", "high")}
        lines.append({**asdict(attribution.subject), **attribution.accuracy, **means, **bounds, **origin()})
    write_csv(path, list(lines[0]), [list(line.values()) for line in lines])


def _subject(name: str, cell: Cell) -> Subject:
    first = cell.scenarios[0]
    return Subject(name, cell.checkpoint, first.draw.data, cell.protocol, first.severity, cell.order, cell.batch_size)


def _variants(entry: Entry, blend: str) -> dict[str, Entry]:
    still = Entry(method="ptbn", checkpoint=entry.checkpoint, protocols=entry.protocols)
    own = method_of(entry, description(checkpoints_of(entry)[0]), str(entry.checkpoint))
    return {
        "source": replace(still, method="source"),
        "batch": still,
        "blend": replace(still, settings={"norm": blend}, label=f"ptbn {blend}{ONLY_ATTRIBUTION}"),
        "batch + steps": _with_statistics(entry, own, "batch"),
        "steps alone": _with_statistics(entry, own, "source"),
    }


def _with_statistics(entry: Entry, own: Method, norm: str) -> Entry:
    """The method with these statistics; a variant that is the entry itself has its name, so that rows have one."""
    label = entry.label if own.norm == norm else f"{entry.label or entry.method} {norm}{ONLY_ATTRIBUTION}"
    return replace(entry, settings=entry.settings | {"norm": norm}, label=label)
