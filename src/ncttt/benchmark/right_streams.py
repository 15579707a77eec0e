"""Which images of a cell were right, as streams that can be compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ncttt.base.errors import InputError
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.store import Store


def right_streams(cell: Cell, store: Store, place: int = -1) -> list[np.ndarray]:
    """Whether each image was right after the step count at that place, a stream for each corruption that is one."""
    right = store.right(cell.key)
    if right is None:
        raise InputError(
            f"the store has no predictions of {cell.label} on {cell.columns()['corruption']}; run it first"
        )
    return [right[place]] if cell.mixed else np.split(right[place], len(cell.scenarios))


def by_seed(cells: Sequence[Cell], store: Store) -> dict[int, list[np.ndarray]]:
    """The streams of cells that differ in corruption and seed, seed by seed.

    Seeds show the same images in other batches, so they are no further samples: each is compared by itself.
    """
    streams: dict[int, list[np.ndarray]] = {}
    for cell in cells:
        streams.setdefault(cell.seed, []).extend(right_streams(cell, store))
    return streams
