"""The driver of a grid: hands out the cells that are missing and keeps each row when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ncttt.benchmark.cell import Cell
from ncttt.benchmark.executors import Executor, Failure, Here
from ncttt.benchmark.measure import measure
from ncttt.benchmark.store import Store
from ncttt.benchmark.table import Row


class Watcher:
    """What a run of a grid tells; nothing by default."""

    def begin(self, cells: int, missing: int) -> None:
        """So many cells, of which so many are to be measured."""

    def cell(self, cell: Cell, row: Row | Failure) -> None:
        """A cell is finished, or has failed."""

    def end(self) -> None:
        """All is done, or the run has been stopped."""


@dataclass(frozen=True)
class Outcome:
    """The rows of all cells of a grid that are finished, in its order, and why the others failed."""

    rows: list[Row]
    failures: list[tuple[Cell, str]]


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor | None = None,
    *,
    force: bool = False,
    predictions: bool = False,
    cache: str | Path | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """Measure the cells that the store does not have, or all with `force`; a failed one does not stop the rest.

    With `predictions`, rows without those of each image, such as a CSV gives, are measured again. Corrupted images are
    kept in the folder `cache`, by default beside the store.
    """
    watcher, executor = watcher or Watcher(), executor or Here()
    done = set() if force else store.done(predictions)
    missing = _by_scene([cell for cell in cells if cell.key not in done])
    failures = []
    watcher.begin(len(cells), len(missing))
    try:
        work = partial(measure, cache=cache_beside(store.path) if cache is None else Path(cache).absolute())
        for cell, measured in executor.run(work, missing):
            row: Any = measured if isinstance(measured, Failure) else _row(cell, measured.columns)
            if isinstance(measured, Failure):
                store.fail(cell.key, cell.columns(), measured.error)
                failures.append((cell, measured.error))
            else:
                store.write(row, measured.predicted, measured.right)
            watcher.cell(cell, row)
    finally:
        watcher.end()
    failed = {cell.key for cell, _ in failures}
    return Outcome(rows_of([cell for cell in cells if cell.key not in failed], store), failures)


def rows_of(cells: Sequence[Cell], store: Store) -> list[Row]:
    """The finished rows of these cells, in their order, under the names that the cells have now."""
    found = store.by_key([cell.key for cell in cells])
    return [found[cell.key] | cell.columns() for cell in cells if cell.key in found]


def cache_beside(store: Path) -> Path:
    """Where the images of a store's grids lie, unless somebody says otherwise."""
    return store.absolute().parent / "images"


def _by_scene(cells: Sequence[Cell]) -> list[Cell]:
    """What shares images together, and among them what shares a checkpoint: both are read once then."""
    places = {scenes: place for place, scenes in enumerate(dict.fromkeys(cell.scenes for cell in cells))}
    return sorted(cells, key=lambda cell: (places[cell.scenes], cell.folder))


def _row(cell: Cell, measured: Row) -> Row:
    return {"key": cell.key, **cell.columns(), **measured}
