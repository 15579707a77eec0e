"""The trials of a tuning: which combinations of settings there are, the cells that measure them, and their ranks."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ncttt.adapt.protocols import PROTOCOLS
from ncttt.base.errors import InputError
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of
from ncttt.benchmark.grid import Entry, Grid
from ncttt.benchmark.intervals import Difference, paired_difference
from ncttt.benchmark.right_streams import right_streams
from ncttt.benchmark.store import Store
from ncttt.benchmark.tuning.config import Tuning
from ncttt.zoo.stored import trained_method

Settings = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One combination of settings, the checkpoint that has them, and the cells that measure it.

    `place` is that of its step count among those that its cells predict after: trials that differ in nothing else share
    their cells where each batch begins anew. `baseline` are the cells of batch statistics on the same checkpoint.
    """

    settings: Settings
    checkpoint: str
    cells: list[Cell]
    place: int
    baseline: list[Cell]


@dataclass(frozen=True)
class TrialResult:
    """A trial's mean accuracy, and what its steps gave over batch statistics on the same checkpoint."""

    trial: Trial
    accuracy: float
    gain: Difference


def combinations(tuning: Tuning) -> list[tuple[Settings, Settings]]:
    """Settings (trained, adapted) to try: all there are, or a seeded draw of them."""
    chosen = _one_by_one(tuning.trained) if tuning.one_by_one else _product(tuning.trained)
    trainings = [trained | _tied(tuning, trained) for trained in chosen]
    every = [(t, a) for t in trainings for a in _product(tuning.adapted)]
    if tuning.random is None or tuning.random >= len(every):
        return every
    chosen = sorted(random.Random(tuning.seed).sample(range(len(every)), tuning.random))
    return [every[number] for number in chosen]


def factor_and_name(rule: str, trained: Iterable[str]) -> tuple[float, str]:
    """What a tied setting is made of: a factor and the setting that it multiplies, one of those that are tried.

    >>> factor_and_name("2 * method_settings.sigma_in", ["method_settings.sigma_in"])
    (2.0, 'method_settings.sigma_in')
    """
    factor, _, name = (part.strip() for part in str(rule).partition("*"))
    if name not in trained or not re.fullmatch(r"\d+(\.\d+)?", factor):
        raise InputError(f"a tied setting is a number * a setting that is tried, as in 2 * layer; found {rule!r}")
    return float(factor), name


def _tied(tuning: Tuning, trained: Settings) -> Settings:
    rules = {name: factor_and_name(rule, tuning.trained) for name, rule in tuning.tied.items()}
    return {name: factor * trained[other] for name, (factor, other) in rules.items() if other in trained}


def planned(tuning: Tuning, checkpoint_of: Callable[[Settings], str], fresh: bool = False) -> list[Trial]:
    """What to measure; `checkpoint_of` trains, or finds, the model for the settings of a training.

    With `fresh` the images are others, on which nothing was chosen.
    """
    chosen = combinations(tuning)
    checkpoints = {_name(trained): checkpoint_of(trained) for trained in {_name(t): t for t, _ in chosen}.values()}
    steps = _shared_steps(tuning)
    cells: dict[str, list[Cell]] = {}
    trials = []
    for trained, adapted in chosen:
        checkpoint = checkpoints[_name(trained)]
        own = _entry(checkpoint, tuning.method, adapted, steps)
        still = Entry(method="ptbn", checkpoint=checkpoint)
        for entry in (own, still):
            if repr(entry) not in cells:
                cells[repr(entry)] = cells_of(grid_of(tuning, entry, fresh))
        place = steps.index(adapted["steps"]) if steps else 0
        trials.append(Trial({**trained, **adapted}, checkpoint, cells[repr(own)], place, cells[repr(still)]))
    return trials


def cells_of_trials(trials: Sequence[Trial]) -> list[Cell]:
    """All cells, each once."""
    return list({cell.key: cell for trial in trials for cell in (*trial.baseline, *trial.cells)}.values())


def ranked(trials: Sequence[Trial], store: Store) -> list[TrialResult]:
    """The trials by mean accuracy, the best first; those with a failed cell are left out."""
    here = store.done(predictions=True)
    whole = [trial for trial in trials if all(cell.key in here for cell in (*trial.cells, *trial.baseline))]
    return sorted((_result(trial, store) for trial in whole), key=lambda result: -result.accuracy)


def _result(trial: Trial, store: Store) -> TrialResult:
    right = [stream for cell in trial.cells for stream in right_streams(cell, store, trial.place)]
    base = [stream for cell in trial.baseline for stream in right_streams(cell, store)]
    cell = trial.cells[0]
    gain = paired_difference(right, base, cell.batch_size, remembers=cell.remembers)
    return TrialResult(trial, float(np.mean([stream.mean() for stream in right])), gain)


def _entry(checkpoint: str, method: str | None, adapted: Settings, steps: list[int]) -> Entry:
    settings = {name: value for name, value in adapted.items() if name != "stop"}
    if steps:
        settings["steps"] = steps[-1]
    return Entry(
        method=method or trained_method(checkpoint)["name"],
        checkpoint=checkpoint,
        settings=settings,
        steps=steps or None,
        stop=adapted.get("stop"),
    )


def grid_of(tuning: Tuning, entry: Entry, fresh: bool) -> Grid:
    """The grid of one entry, on the images that settings are chosen on or on fresh ones."""
    if fresh and tuning.images is None:
        raise InputError("to confirm on fresh images, tune on some of them: give images")
    return Grid(
        data=tuning.data,
        methods=[entry],
        split=tuning.split,
        images=tuning.confirm_images or tuning.images if fresh else tuning.images,
        skip=tuning.images if fresh and tuning.images else 0,
        root=tuning.root,
        resize=tuning.resize,
        corruptions=tuning.corruptions,
        severities=[tuning.severity],
        constants=tuning.constants,
        protocols=[tuning.protocol],
        orders=[tuning.order],
        sequences=[tuning.sequence],
        batch_sizes=None if tuning.batch_size is None else [tuning.batch_size],
        seeds=[tuning.seed],
        threads=tuning.threads,
        device=tuning.device,
    )


def _shared_steps(tuning: Tuning) -> list[int]:
    """Step counts that one cell measures together; none where a stream goes on from its last step."""
    return [] if PROTOCOLS.find(tuning.protocol).remembers else sorted(tuning.adapted.get("steps", []))


def _product(choices: dict[str, list[Any]]) -> Iterator[Settings]:
    return (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


def _one_by_one(choices: dict[str, list[Any]]) -> Iterator[Settings]:
    yield {}
    yield from ({name: value} for name, values in choices.items() for value in values)


def _name(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True)
