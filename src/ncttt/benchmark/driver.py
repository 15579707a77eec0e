"""The driver of a grid: hands out the cells that are missing and keeps each row when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.base.locks import alone_with
from ncttt.base.progress import ProgressDisplay
from ncttt.base.words import counted
from ncttt.benchmark import executors
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.cells import cells_of
from ncttt.benchmark.executors import Executor, Failure, Here
from ncttt.benchmark.grid import Grid
from ncttt.benchmark.measure import Result, measure
from ncttt.benchmark.rows import Row
from ncttt.benchmark.scenarios import Scenario, decode_files
from ncttt.benchmark.store import Store
from ncttt.methods import METHODS

Failures = list[tuple[Cell, str]]


@dataclass(frozen=True)
class Outcome:
    """The rows of all cells that are finished, in the order of the grid, and why the others failed."""

    rows: list[Row]
    failures: Failures


def run_grid(
    grid: Grid,
    store: Store,
    *,
    executor: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    cache: str | Path | None = None,
    force: bool = False,
    predictions: bool = False,
    progress: bool = True,
) -> Outcome:
    """Measure the cells of a grid that the store does not have: see `run_cells` and `executors.executor`."""
    cells = cells_of(grid)
    runs_on = executors.executor(executor, grid.threads, workers, address, grid.device)
    return run_cells(cells, store, runs_on, force=force, predictions=predictions, cache=cache, progress=progress)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor | None = None,
    *,
    force: bool = False,
    predictions: bool = False,
    cache: str | Path | None = None,
    progress: bool = False,
) -> Outcome:
    """Measure the cells that the store does not have, or all with `force`; a failed one does not stop the rest.

    With `predictions`, rows without those of each image, such as a CSV gives, are measured again. Images are kept in
    the folder `cache`, by default beside the store; image files are decoded there before anything is measured.
    """
    done = set() if force else store.done(predictions)
    missing = _by_scenario([cell for cell in cells if cell.key not in done])
    place = cache_beside(store.path) if cache is None else Path(cache).absolute()
    work = partial(measure, cache=place, methods=METHODS.addresses)
    failures: Failures = []
    with alone_with(store.path), _displaying(len(cells), len(missing)) if progress else nullcontext() as display:
        say = (lambda line: None) if display is None else display.say
        decode_files((scenario for cell in missing for scenario in cell.scenarios), place, say)
        decode_files(_calibrations(missing), place, say)
        for label, draw in dict.fromkeys((cell.label, cell.calibration.draw) for cell in missing if cell.calibration):
            say(f"{label} is calibrated on held-out source images: {draw.data}, split {draw.split}, without labels")
        for cell, result in (executor or Here()).run(work, missing):
            _keep(cell, result, store)
            if isinstance(result, Failure):
                failures.append((cell, result.error))
            if display is not None:
                _tell(display, cell, result)
    failed = {cell.key for cell, _ in failures}
    return Outcome(rows_of([cell for cell in cells if cell.key not in failed], store), failures)


def rows_of(cells: Sequence[Cell], store: Store) -> list[Row]:
    """The finished rows of these cells, in their order, under the names that the cells have now."""
    rows = store.by_key([cell.key for cell in cells])
    return [rows[cell.key] | cell.columns() for cell in cells if cell.key in rows]


def raise_failures(failures: Failures) -> None:
    """Raise an `InputError` if cells failed; those that did not are kept."""
    if failures:
        cell, error = failures[0]
        count = f"{len(failures)} cells failed" if len(failures) > 1 else "one cell failed"
        raise InputError(f"{count}, the others are kept; {cell.title}: {error}")


def cache_beside(store: Path) -> Path:
    """Where the images of a store's grids lie, unless somebody says otherwise."""
    return store.absolute().parent / "images"


def _by_scenario(cells: Sequence[Cell]) -> list[Cell]:
    """What shares images together, and among them what shares a checkpoint: both are read once then."""
    places = {scenarios: place for place, scenarios in enumerate(dict.fromkeys(cell.scenarios for cell in cells))}
    return sorted(cells, key=lambda cell: (places[cell.scenarios], cell.folder))


def _keep(cell: Cell, result: Result | Failure, store: Store) -> None:
    if isinstance(result, Failure):
        store.fail(cell.key, cell.columns(), result.error)
    else:
        store.write({"key": cell.key, **cell.columns(), **result.columns}, result.predicted, result.right)


def _calibrations(cells: Sequence[Cell]) -> list[Scenario]:
    return list(dict.fromkeys(cell.calibration for cell in cells if cell.calibration is not None))


def _displaying(cells: int, missing: int) -> ProgressDisplay:
    display = ProgressDisplay("cells", cells, done=cells - missing)
    display.say(f"{counted(cells, 'cell')}, {cells - missing} done before, {missing} to measure")
    return display


def _tell(display: ProgressDisplay, cell: Cell, result: Result | Failure) -> None:
    if isinstance(result, Failure):
        display.say(f"failed: {cell.title}: {result.error}")
    outcome = "failed" if isinstance(result, Failure) else f"{result.columns['accuracy']:.1%}"
    display.advance(state=f"{cell.title}: {outcome}")
