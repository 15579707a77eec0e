"""How far a long piece of work has come: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from ncttt.base.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress

SECONDS = 10.0  # between two lines of a log


class ProgressDisplay:
    """Shows the progress of `total` units of work on standard error, as a context manager.

    `done` of them were finished before. On a terminal it is a bar with the time left; elsewhere a line every ten
    seconds, or none with `lines=False`. Units are counted, or with `unit="bytes"` shown as sizes and speed.
    """

    def __init__(self, unit: str, total: int | None = None, *, done: int = 0, lines: bool = True):
        self.unit, self.total, self.done, self.lines = unit, total, done, lines
        self._before, self._began = done, time.monotonic()
        self._told, self._state = self._began, ""
        self._bar = self._make_bar() if sys.stderr.isatty() else None

    @property
    def live(self) -> bool:
        """Whether there is a bar."""
        return self._bar is not None

    def __enter__(self) -> ProgressDisplay:
        return self.start()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> ProgressDisplay:
        """Show the bar, if there is one."""
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self.total, completed=self.done, state="")
        return self

    def stop(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int = 1, state: str | None = None) -> None:
        """So many more units are done; `state` is shown beside the bar."""
        self.update(self.done + count, state)

    def update(self, done: int, state: str | None = None, total: int | None = None) -> None:
        """So many units are done in all."""
        self.done, self.total = done, self.total if total is None else total
        self._state = self._state if state is None else state
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=self.total, state=printable(self._state))
        elif self.lines and (time.monotonic() - self._told >= SECONDS or done == self.total):
            self._told = time.monotonic()
            left = "" if self.total is None else f", {clock(self.seconds_left())} left"
            state = f": {self._state}" if self._state else ""
            self.say(f"{done}{f'/{self.total}' if self.total else ''} {self.unit}{left}{state}")

    def say(self, text: str) -> None:
        """A line of its own, above the bar."""
        text = printable(text)
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def seconds_left(self) -> float:
        """How long the rest takes at the speed so far."""
        pace = (time.monotonic() - self._began) / max(1, self.done - self._before)
        return pace * max(0, (self.total or self.done) - self.done)

    def _make_bar(self) -> Progress:
        # rich takes a tenth of a second to import, which a command whose output is piped need not wait for.
        from rich import progress
        from rich.console import Console
        from rich.table import Column
        from rich.text import Text

        class State(progress.ProgressColumn):
            """What is left of the line; the other columns keep their width, and a long state is cut."""

            def render(self, task: progress.Task) -> Text:
                return Text(task.fields["state"], no_wrap=True, overflow="ellipsis")

        def whole() -> Column:
            return Column(no_wrap=True)

        counted = [progress.MofNCompleteColumn(table_column=whole())]
        sized = [progress.DownloadColumn(table_column=whole()), progress.TransferSpeedColumn(table_column=whole())]
        return progress.Progress(
            progress.TextColumn(self.unit),
            progress.BarColumn(20, table_column=whole()),
            *(sized if self.unit == "bytes" else counted),
            progress.TimeRemainingColumn(table_column=whole()),
            State(),
            console=Console(stderr=True),
        )


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours.

    >>> clock(75), clock(7260)
    ('1:15', '2:01:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
