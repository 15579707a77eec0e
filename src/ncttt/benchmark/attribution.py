"""What a method's gain is made of: ONE checkpoint with source statistics, batch statistics, a blend, and the gradient.

statistics + gradient = total, on the same images: statistics is what batch statistics give over the source's, gradient
what the steps give over batch statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of, checkpoints_of
from ncttt.benchmark.statistics import Difference, paired_difference
from ncttt.benchmark.store import Store
from ncttt.errors import InputError
from ncttt.grid import Entry, Grid
from ncttt.methods import METHODS

BLEND = "blend(0.5)"


@dataclass(frozen=True)
class Attribution:
    """Accuracies of one method on one checkpoint, mean over scenes and seeds, and the shares of its gain."""

    method: str
    checkpoint: str
    protocol: str
    accuracy: dict[str, float]
    statistics: Difference
    gradient: Difference
    total: Difference


@dataclass(frozen=True)
class Plan:
    """The cells of one method on one checkpoint in one protocol, in each way, in the same order."""

    method: str
    checkpoint: str
    protocol: str
    ways: dict[str, list[Cell]]

    def cells(self) -> list[Cell]:
        """All of them."""
        return [cell for cells in self.ways.values() for cell in cells]


def plans(grid: Grid, blend: str = BLEND) -> list[Plan]:
    """Five ways for each method of the grid that learns; the others have nothing to divide."""
    found = []
    for entry in grid.methods:
        if entry.method in METHODS and not METHODS[entry.method].learns:
            continue
        for checkpoint in checkpoints_of(entry):
            for protocol in entry.protocols or grid.protocols:
                ways = _ways(replace(entry, checkpoint=checkpoint, protocols=[protocol]), blend)
                cells = {way: cells_of(replace(grid, methods=[asked])) for way, asked in ways.items()}
                found.append(Plan(entry.label or entry.method, checkpoint, protocol, cells))
    if not found:
        raise InputError("no method of this grid learns at test time, so there is no gradient to tell apart")
    return found


def unique_cells(plans: Sequence[Plan]) -> list[Cell]:
    """The cells of all plans, those that several share once, scene by scene."""
    cells = {cell.key: cell for plan in plans for cell in plan.cells()}
    places = {scene: n for n, scene in enumerate(dict.fromkeys(cell.scenes for cell in cells.values()))}
    return sorted(cells.values(), key=lambda cell: places[cell.scenes])


def attribute(plan: Plan, store: Store) -> Attribution:
    """Divide the gain, with intervals; all cells of the plan must be in the store."""
    right = {way: [_right(cell, store) for cell in cells] for way, cells in plan.ways.items()}
    first = plan.ways["source"][0]
    options: dict[str, Any] = {"batch_size": first.batch_size, "remembers": plan.protocol != "episodic"}

    def gain(better: str, base: str) -> Difference:
        return paired_difference(right[better], right[base], **options)

    return Attribution(
        plan.method,
        plan.checkpoint,
        plan.protocol,
        {way: float(np.mean([part.mean() for part in parts])) for way, parts in right.items()},
        statistics=gain("batch", "source"),
        gradient=gain("batch + gradient", "batch"),
        total=gain("batch + gradient", "source"),
    )


def _ways(entry: Entry, blend: str) -> dict[str, Entry]:
    still = replace(entry, settings={}, steps=None, stop=None, method="ptbn")
    return {
        "source": replace(still, method="source"),
        "batch": still,
        "blend": replace(still, settings={"norm": blend}),
        "batch + gradient": replace(entry, settings=entry.settings | {"norm": "batch"}),
        "gradient alone": replace(entry, settings=entry.settings | {"norm": "source"}),
    }


def _right(cell: Cell, store: Store) -> np.ndarray:
    right = store.right(cell.key)
    if right is None:
        raise InputError(
            f"the store has no predictions of {cell.label} on {cell.columns()['corruption']}; run it first"
        )
    return right[-1]
