"""What a method costs: its time for a batch as a multiple of the frozen classifier's, in turns in one process."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.small_batches import SmallBatchWarning
from ncttt.base.progress import ProgressDisplay
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of
from ncttt.benchmark.grid import Grid
from ncttt.methods.settings import method_from
from ncttt.zoo.checkpoint import load

ROUNDS = 3  # after one that warms up
FROZEN = "source"


def relative_times(grid: Grid, images: Tensor, rounds: int = ROUNDS) -> dict[str, float]:
    """Time for a batch of images `(B, 3, H, W)` by method, as a multiple of the frozen classifier's.

    Of a method that runs on several models the first is timed; a time is the median of the ratios within a round, so
    that other work of the machine falls on all of them.
    """
    first = {cell.label: cell for cell in reversed(cells_of(grid))}
    adapters = {label: _adapter(cell) for label, cell in first.items()}
    before = torch.get_num_threads()
    torch.set_num_threads(grid.threads)
    try:
        with ProgressDisplay("rounds", rounds + 1, lines=False) as display:
            return ratios([_round(adapters, images, display) for _ in range(rounds + 1)][1:])
    finally:
        torch.set_num_threads(before)


def ratios(turns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Medians of seconds to the frozen classifier's in the same round.

    >>> ratios([{"source": 1.0, "tent": 3.0}, {"source": 2.0, "tent": 8.0}, {"source": 1.0, "tent": 9.0}])
    {'source': 1.0, 'tent': 4.0}
    """
    return {name: statistics.median(turn[name] / turn[FROZEN] for turn in turns) for name in turns[0]}


def _round(adapters: Mapping[str, Any], images: Tensor, display: ProgressDisplay) -> dict[str, float]:
    seconds = {name: _seconds(adapter, images) for name, adapter in adapters.items()}
    display.advance()
    return seconds


def _seconds(adapter: Any, images: Tensor) -> float:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallBatchWarning)  # what a batch costs does not depend on what it is worth
        adapter(images)
    return time.perf_counter() - began


def _adapter(cell: Cell) -> Adapter:
    options: dict[str, Any] = {"protocol": cell.protocol, "stop": cell.stop, "seed": cell.seed}
    return Adapter(load(cell.folder), method_from(cell.method), **options)
