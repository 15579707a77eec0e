"""What a method costs: its time for a batch as a multiple of the frozen classifier's, in turns in one process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.small_batches import SmallBatchWarning
from ncttt.base.progress import ProgressDisplay
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of
from ncttt.benchmark.grid import Grid
from ncttt.demo.threads import one_thread
from ncttt.methods.settings import method_from
from ncttt.zoo.checkpoint import load

ROUNDS = 3  # after one that warms up
LONG = 0.1  # seconds
FROZEN = "source"


def relative_times(grid: Grid, images: Tensor, rounds: int = ROUNDS) -> dict[str, float]:
    """Time for a batch of images `(B, 3, H, W)` by method, as a multiple of the frozen classifier's.

    Of a method that runs on several models the first is timed. All take turns, and the least time of each counts:
    other work of the machine only adds to it.
    """
    first = {cell.label: cell for cell in reversed(cells_of(grid))}
    adapters = {label: _adapter(cell) for label, cell in first.items()}
    with one_thread(), ProgressDisplay("rounds", rounds + 1, lines=False) as display:
        return ratios([_round(adapters, images, display) for _ in range(rounds + 1)][1:])


def ratios(turns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The least seconds of each over all rounds, as multiples of the frozen classifier's.

    >>> ratios([{"source": 1.0, "tent": 9.0}, {"source": 2.0, "tent": 4.0}])
    {'source': 1.0, 'tent': 4.0}
    """
    least = {name: min(turn[name] for turn in turns) for name in turns[0]}
    return {name: seconds / least[FROZEN] for name, seconds in least.items()}


def _round(adapters: Mapping[str, Any], images: Tensor, display: ProgressDisplay) -> dict[str, float]:
    seconds = {name: _seconds(adapter, images) for name, adapter in adapters.items()}
    display.advance()
    return seconds


def _seconds(adapter: Any, images: Tensor) -> float:
    """The least time for the batch; what is quick is timed until `LONG` has passed."""
    least, began = float("inf"), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallBatchWarning)  # what a batch costs does not depend on what it is worth
        while time.perf_counter() - began < LONG:
            start = time.perf_counter()
            adapter(images)
            least = min(least, time.perf_counter() - start)
    return least


def _adapter(cell: Cell) -> Adapter:
    options: dict[str, Any] = {"protocol": cell.protocol, "stop": cell.stop, "seed": cell.seed}
    return Adapter(load(cell.folder), method_from(cell.method), **options)
