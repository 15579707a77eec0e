"""A drifting stream on a terminal while it runs: two accuracies, the drift signal and its alarm, domain by domain.

Elsewhere it is a line for each domain. Both are made from the records of `ncttt.benchmark.drifting` alone.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ncttt.benchmark.drifting import DomainSummary, DriftRecord, shifted_mean, summaries
from ncttt.demo.bars import bars, columns_of, labels_under
from ncttt.report.names import spelled

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

    from ncttt.demo.stream import DemoStream

SIDE = 10  # characters left of the bars
LOOKS = {"frozen": "red", "adapted": "cyan"}  # which eyes that see no red tell apart, too
EVERY = "100 % of batches"  # the widest cell of the alarm
SMALLEST = 1e-300  # of a probability: what is smaller is drawn as this


def watch(shown: DemoStream) -> list[DriftRecord]:
    """Show a stream on standard error while it runs, and return its records."""
    from rich.console import Console  # a tenth of a second, which `ncttt --help` does not wait for

    return _drawn(shown, Console(stderr=True)) if is_watched() else _written(shown)


def is_watched() -> bool:
    """Whether somebody looks at standard error: a terminal that can move its cursor and show colours."""
    able = os.environ.get("TERM") not in ("dumb", "unknown")
    return sys.stderr.isatty() and able and not any(map(os.environ.get, ("NO_COLOR", "CI")))


class View:
    """The picture of a stream after the records so far; every frame has the same height."""

    def __init__(self, title: str, domains: Sequence[str], images: int, batches: int):
        self.title, self.domains, self.images, self.batches = title, domains, images, batches
        self.records: list[DriftRecord] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.console import Group
        from rich.panel import Panel

        width = max(len(self.domains), options.max_width - 4 - SIDE)
        parts = [self._now(), "", *self._accuracies(width), *self._signal(width), self._axis(width), "", self._table()]
        below = "no labels are given to the models; they only score"
        yield Panel(Group(*parts), title=_plain(self.title, "bold"), subtitle=_plain(below), padding=(0, 1))

    def _now(self) -> Text:
        """What the viewer knows, and what the monitor says."""
        seen = sum(record.images for record in self.records)
        text = _plain(f"{seen:,} of {self.images:,} images")
        if not self.records:
            return text
        last = self.records[-1]
        text.append(f"   now: {spelled(last.corruption)}")
        text.append("   ")
        return text.append(" DRIFT ALARM ", "bold white on red") if last.alarm else text.append("no alarm", "dim")

    def _accuracies(self, width: int) -> Iterator[Text]:
        for name, colour in LOOKS.items():
            values = columns_of([getattr(record, name) for record in self.records], self.batches, width)
            so_far = _mean(self.records, name)
            for side, row in zip((name, so_far, "so far"), bars(values, 3), strict=True):
                yield _plain(f"{side:{SIDE}}", colour).append(row, colour)
            yield _plain("")

    def _signal(self, width: int) -> Iterator[Text]:
        signal = columns_of([drift(record.p) for record in self.records], self.batches, width)
        alarms = columns_of([float(record.alarm) for record in self.records], self.batches, width)
        for side, row in zip(("drift", "signal"), bars(signal, 2), strict=True):
            text = _plain(f"{side:{SIDE}}", "yellow")
            for character, alarm in zip(row, alarms, strict=True):
                text.append(character, "bold red" if alarm else "yellow")
            yield text

    def _axis(self, width: int) -> Text:
        names = [spelled(name) for name in self.domains]
        return _plain(" " * SIDE + labels_under(names, width), "dim")

    def _table(self) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("the images are", no_wrap=True, min_width=max(map(len, self.domains)))
        for header, colour in LOOKS.items():
            table.add_column(header, header_style=f"bold {colour}", justify="right", no_wrap=True, min_width=7)
        table.add_column("drift alarm", justify="right", no_wrap=True, min_width=len(EVERY))
        done = {domain.domain: domain for domain in summaries(self.records)}
        for number, name in enumerate(self.domains):
            table.add_row(_plain(spelled(name)), *_cells(done.get(number)))
        return table


def drift(p: float) -> float:
    """The height of the drift signal, from 0 for p = 1 to 1 for the smallest, a logarithm of a logarithm.

    >>> drift(1.0), round(drift(0.01), 2), drift(0.0)
    (0.0, 0.19, 1.0)
    """
    return math.log1p(math.log10(1 / max(p, SMALLEST))) / math.log1p(math.log10(1 / SMALLEST))


def line_of(domain: DomainSummary) -> str:
    """A domain in one line, for those who read no picture.

    >>> line_of(DomainSummary(1, "fog", 500, 0.25, 0.8, 0.81, 0.9))
    'Fog, 500 images: frozen model 25.0 % right, adapted 81.0 %; drift alarm in 90 % of batches'
    """
    return (
        f"{spelled(domain.corruption)}, {domain.images:,} images: frozen model {100 * domain.frozen:.1f} % right, "
        f"adapted {100 * domain.adapted:.1f} %; drift alarm in {100 * domain.alarms:.0f} % of batches"
    )


def finding(records: Sequence[DriftRecord]) -> str:
    """What the stream showed, in a sentence made from its numbers."""
    domains = summaries(records)
    frozen, statistics, adapted = (
        f"{100 * shifted_mean(domains, name):.1f} %" for name in ("frozen", "statistics", "adapted")
    )
    return (
        f"Of the shifted images the frozen model had {frozen} right, the adapted one {adapted}; "
        f"batch statistics alone, without a step, {statistics}."
    )


def view_of(shown: DemoStream) -> View:
    """An empty view of a stream."""
    domains, images = shown.stream.domains, shown.stream.images
    title = f"A stream of {shown.data} that drifts and comes back"
    return View(title, domains, len(domains) * images, len(shown))


def _drawn(shown: DemoStream, console: Console) -> list[DriftRecord]:
    from rich.live import Live

    view = view_of(shown)
    with Live(view, console=console, auto_refresh=False) as live:
        for record in shown:
            view.records.append(record)
            live.refresh()
    return view.records


def _written(shown: DemoStream) -> list[DriftRecord]:
    records: list[DriftRecord] = []
    for record in shown:
        if records and record.domain != records[-1].domain:
            print(line_of(summaries(records)[-1]), file=sys.stderr, flush=True)
        records.append(record)
    print(line_of(summaries(records)[-1]), file=sys.stderr, flush=True)
    return records


def _cells(domain: DomainSummary | None) -> list[str]:
    if domain is None:
        return ["", "", ""]
    alarms = EVERY.replace("100", f"{100 * domain.alarms:.0f}")
    return [f"{100 * domain.frozen:.1f} %", f"{100 * domain.adapted:.1f} %", alarms]


def _mean(records: Sequence[DriftRecord], name: str) -> str:
    images = sum(record.images for record in records)
    return f"{100 * sum(getattr(record, name) * record.images for record in records) / images:.1f} %" if images else ""


def _plain(text: str, style: str = "") -> Text:
    """A line that is never wrapped, whatever marks of its own it has."""
    from rich.text import Text

    return Text(text, style, no_wrap=True, overflow="ellipsis")
