"""Watching a grid: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

from ncttt.base.progress import clock
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.driver import Watcher
from ncttt.benchmark.executors import Failure
from ncttt.benchmark.table import Row

SECONDS = 10.0  # between two lines of a log


class Lines(Watcher):
    """A line every few seconds, and one for every failure."""

    def begin(self, cells: int, missing: int) -> None:
        self.began = self.told = time.monotonic()
        self.missing, self.done = missing, 0
        print(f"{cells} cells, {cells - missing} done before, {missing} to measure", file=sys.stderr, flush=True)

    def cell(self, cell: Cell, row: Row | Failure) -> None:
        self.done += 1
        now = time.monotonic()
        if isinstance(row, Failure):
            print(f"failed: {name_of(cell)}: {row.error}", file=sys.stderr, flush=True)
        if now - self.told >= SECONDS or self.done == self.missing:
            self.told = now
            left = (now - self.began) / self.done * (self.missing - self.done)
            print(
                f"{self.done}/{self.missing} cells, {clock(left)} left: {result(cell, row)}",
                file=sys.stderr,
                flush=True,
            )


class Bar(Watcher):
    """A live bar."""

    def begin(self, cells: int, missing: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = ("cells", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[last]}"))
        self.progress = Progress(*columns, console=Console(stderr=True))
        self.progress.start()
        self.task = self.progress.add_task("", total=cells, completed=cells - missing, last="")

    def cell(self, cell: Cell, row: Row | Failure) -> None:
        if isinstance(row, Failure):
            self.progress.console.print(f"failed: {name_of(cell)}: {row.error}", highlight=False, markup=False)
        self.progress.update(self.task, advance=1, last=result(cell, row))

    def end(self) -> None:
        self.progress.stop()


def watcher() -> Watcher:
    """A bar on a terminal, lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines()


def name_of(cell: Cell) -> str:
    """A cell in a few words."""
    columns = cell.columns()
    where = columns["corruption"] if len(cell.scenes) == 1 else f"{len(cell.scenes)} corruptions"
    return f"{cell.label} on {cell.checkpoint}, {where} {columns['severity']}, {cell.protocol}, seed {cell.seed}"


def result(cell: Cell, row: Row | Failure) -> str:
    """A cell and what came of it."""
    return f"{name_of(cell)}: {'failed' if isinstance(row, Failure) else format(row['accuracy'], '.1%')}"
