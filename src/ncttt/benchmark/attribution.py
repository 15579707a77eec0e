"""What a method's gain is made of: ONE checkpoint with source statistics, batch statistics, a blend, and the gradient.

statistics + gradient = total, on the same images: statistics is what batch statistics give over the source's, gradient
what the steps give over batch statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ncttt.base.errors import InputError
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of, checkpoints_of
from ncttt.benchmark.grid import BLEND, Entry, Grid
from ncttt.benchmark.paired import by_seed
from ncttt.benchmark.statistics import Difference, mean_difference, paired_difference
from ncttt.benchmark.store import Store
from ncttt.methods import METHODS


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
    """Accuracies of a subject in each way, mean over corruptions and seeds, and the shares of its gain."""

    subject: Subject
    accuracy: dict[str, float]
    statistics: Difference
    gradient: Difference
    total: Difference


@dataclass(frozen=True)
class Plan:
    """The cells of a subject in each way, in the same order of corruptions and seeds."""

    subject: Subject
    ways: dict[str, list[Cell]]

    def cells(self) -> list[Cell]:
        """All of them."""
        return [cell for cells in self.ways.values() for cell in cells]


def plans(grid: Grid, blend: str = BLEND) -> list[Plan]:
    """Five ways for each method of the grid that learns; the others have nothing to divide."""
    cells_of(grid)  # refuses entries that contradict each other
    found: dict[Subject, dict[str, list[Cell]]] = {}
    for entry in grid.methods:
        if entry.method in METHODS and not METHODS[entry.method].learns:
            continue
        for checkpoint in checkpoints_of(entry):
            for way, asked in _ways(replace(entry, checkpoint=checkpoint), blend).items():
                for cell in cells_of(replace(grid, methods=[asked])):
                    ways = found.setdefault(_subject(entry.label or entry.method, cell), {})
                    ways.setdefault(way, []).append(cell)
    if not found:
        raise InputError("no method of this grid learns at test time, so there is no gradient to tell apart")
    return [Plan(subject, ways) for subject, ways in found.items()]


def unique_cells(plans: Sequence[Plan]) -> list[Cell]:
    """The cells of all plans, those that several share once."""
    return list({cell.key: cell for plan in plans for cell in plan.cells()}.values())


def attribute(plan: Plan, store: Store) -> Attribution:
    """Divide the gain, with intervals; all cells of the plan must be in the store."""
    right = {way: by_seed(cells, store) for way, cells in plan.ways.items()}
    size, remembers = plan.subject.batch_size, plan.subject.protocol != "episodic"

    def gain(better: str, base: str) -> Difference:
        pairs = zip(right[better].values(), right[base].values(), strict=True)
        return mean_difference([paired_difference(one, two, size, remembers=remembers) for one, two in pairs])

    return Attribution(
        plan.subject,
        {
            way: float(np.mean([part.mean() for parts in seeds.values() for part in parts]))
            for way, seeds in right.items()
        },
        statistics=gain("batch", "source"),
        gradient=gain("batch + gradient", "batch"),
        total=gain("batch + gradient", "source"),
    )


def _subject(name: str, cell: Cell) -> Subject:
    first = cell.scenes[0]
    return Subject(
        name, cell.checkpoint, first.pictures.data, cell.protocol, first.severity, cell.order, cell.batch_size
    )


def _ways(entry: Entry, blend: str) -> dict[str, Entry]:
    still = Entry(method="ptbn", checkpoint=entry.checkpoint, protocols=entry.protocols)
    name = entry.label or entry.method
    return {
        "source": replace(still, method="source"),
        "batch": still,
        "blend": replace(still, settings={"norm": blend}, label=f"ptbn {blend}"),
        "batch + gradient": replace(entry, settings=entry.settings | {"norm": "batch"}, label=f"{name} batch"),
        "gradient alone": replace(entry, settings=entry.settings | {"norm": "source"}, label=f"{name} source"),
    }
