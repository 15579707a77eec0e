"""Choosing settings on validation alone: held-out training images under the corruptions that are not tested on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ncttt.base.errors import InputError
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of
from ncttt.benchmark.grid import Entry, Grid
from ncttt.benchmark.paired import streams_of
from ncttt.benchmark.search import Search
from ncttt.benchmark.statistics import Difference, paired_difference
from ncttt.benchmark.store import Store
from ncttt.zoo.checkpoint import description

Settings = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One combination of settings, the checkpoint that has them, and the cells that measure it.

    `count` is the place of its step count among those that its cells predict after: trials that differ in nothing else
    share their cells where each batch begins anew. `baseline` are the cells of batch statistics on the same checkpoint.
    """

    settings: Settings
    checkpoint: str
    cells: list[Cell]
    count: int
    baseline: list[Cell]


@dataclass(frozen=True)
class Found:
    """A trial's mean accuracy, and what its steps gave over batch statistics on the same checkpoint."""

    trial: Trial
    accuracy: float
    gain: Difference


def combinations(search: Search) -> list[tuple[Settings, Settings]]:
    """Settings (trained, adapted) to try: all there are, or a seeded draw of them."""
    trainings = _one_by_one(search.trained) if search.one_by_one else _product(search.trained)
    every = [(t, a) for t in trainings for a in _product(search.adapted)]
    if search.random is None or search.random >= len(every):
        return every
    chosen = sorted(random.Random(search.seed).sample(range(len(every)), search.random))
    return [every[number] for number in chosen]


def trials(search: Search, checkpoint_of: Callable[[Settings], str], fresh: bool = False) -> list[Trial]:
    """What to measure; `checkpoint_of` trains, or finds, the model for the settings of a training.

    With `fresh` the images are as many others, on which nothing was chosen.
    """
    chosen = combinations(search)
    checkpoints = {_name(trained): checkpoint_of(trained) for trained in {_name(t): t for t, _ in chosen}.values()}
    counts = _counts(search)
    cells: dict[str, list[Cell]] = {}
    found = []
    for trained, adapted in chosen:
        checkpoint = checkpoints[_name(trained)]
        own = _entry(checkpoint, search.method, adapted, counts)
        still = Entry(method="ptbn", checkpoint=checkpoint)
        for entry in (own, still):
            if repr(entry) not in cells:
                cells[repr(entry)] = cells_of(grid_of(search, entry, fresh))
        count = counts.index(adapted["steps"]) if counts else 0
        found.append(Trial({**trained, **adapted}, checkpoint, cells[repr(own)], count, cells[repr(still)]))
    return found


def cells_of_trials(chosen: Sequence[Trial]) -> list[Cell]:
    """All cells, each once."""
    return list({cell.key: cell for trial in chosen for cell in (*trial.baseline, *trial.cells)}.values())


def ranked(chosen: Sequence[Trial], store: Store) -> list[Found]:
    """The trials by mean accuracy, the best first; those with a failed cell are left out."""
    here = store.done(predictions=True)
    whole = [trial for trial in chosen if all(cell.key in here for cell in (*trial.cells, *trial.baseline))]
    return sorted((_found(trial, store) for trial in whole), key=lambda result: -result.accuracy)


def _found(trial: Trial, store: Store) -> Found:
    right = [part for cell in trial.cells for part in streams_of(cell, store, trial.count)]
    base = [part for cell in trial.baseline for part in streams_of(cell, store)]
    cell = trial.cells[0]
    gain = paired_difference(right, base, cell.batch_size, remembers=cell.protocol != "episodic")
    return Found(trial, float(np.mean([part.mean() for part in right])), gain)


def _entry(checkpoint: str, method: str | None, adapted: Settings, counts: list[int]) -> Entry:
    settings = {name: value for name, value in adapted.items() if name != "stop"}
    if counts:
        settings["steps"] = counts[-1]
    return Entry(
        method=method or description(checkpoint)["method"]["name"],
        checkpoint=checkpoint,
        settings=settings,
        steps=counts or None,
        stop=adapted.get("stop"),
    )


def grid_of(search: Search, entry: Entry, fresh: bool) -> Grid:
    """The grid of one entry, on the images that are searched on or on as many fresh ones."""
    if fresh and search.images is None:
        raise InputError("to confirm on fresh images, search on some of them: give images")
    return Grid(
        data=search.data,
        methods=[entry],
        split=search.split,
        images=search.images,
        skip=search.images if fresh and search.images else 0,
        root=search.root,
        corruptions=search.corruptions,
        severities=[search.severity],
        constants=search.constants,
        protocols=[search.protocol],
        batch_sizes=[search.batch_size],
        seeds=[search.seed],
        threads=search.threads,
        device=search.device,
    )


def _counts(search: Search) -> list[int]:
    """Step counts that one cell measures together; none where a stream goes on from its last step."""
    return sorted(search.adapted.get("steps", [])) if search.protocol == "episodic" else []


def _product(choices: dict[str, list[Any]]) -> Iterator[Settings]:
    return (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


def _one_by_one(choices: dict[str, list[Any]]) -> Iterator[Settings]:
    yield {}
    yield from ({name: value} for name, values in choices.items() for value in values)


def _name(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True)
