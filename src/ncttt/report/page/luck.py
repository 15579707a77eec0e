"""Which differences are more than luck: each method against its own checkpoint without steps, by paired predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncttt.base.errors import InputError
from ncttt.report.columns import Column
from ncttt.report.grid import AXES, Row
from ncttt.report.page.ways import MethodLine, Way, ways_of
from ncttt.report.shares import OWN_NORM
from ncttt.report.significance import Comparison, compare

if TYPE_CHECKING:
    from ncttt.benchmark.store import Store

WHOLE = 200.0  # points between losing everything and gaining everything


@dataclass(frozen=True)
class Judged:
    """A comparison of two methods, and the `place` of the way that it belongs to."""

    place: tuple[Any, ...]
    first: Column
    second: Column
    found: Comparison

    @property
    def text(self) -> str:
        """The difference over all corruptions in points, its interval, and what it means."""
        mean, low, high = (100 * float(value) for value in self.found.overall.difference)
        verdict = "is more than luck" if self.found.overall.difference.significant else "may be luck"
        if mean == low == high == 0:
            return "no difference at all"
        if high - low >= WHOLE:  # what so few batches give instead of an interval
            return f"{mean:+.2f} (too few batches for an interval) {verdict}"
        return f"{mean:+.2f} (95 % interval {low:+.2f} to {high:+.2f}) {verdict}"


def judge(store: Store, rows: Iterable[Row]) -> list[Judged]:
    """Compare every method with batch statistics and with the source, on its own checkpoint, where the store can."""
    return [judged for way in ways_of(rows) for judged in _of_way(store, way)]


def _of_way(store: Store, way: Way) -> Iterator[Judged]:
    for line in way.lines:
        for other in way.lines:
            if _rests_on(line, other):
                with suppress(InputError):  # no predictions, too few batches, or rows that are not of the same images
                    yield Judged(way.place, line.column, other.column, _compare(store, way, line, other))


def _rests_on(line: MethodLine, other: MethodLine) -> bool:
    """Whether the other is the same checkpoint with fewer means: batch statistics need the source's, steps both."""
    still, method = list(OWN_NORM), line.column.method
    if other.column.checkpoint != line.column.checkpoint or other.column.method not in still:
        return False
    return method not in still or still.index(method) > still.index(other.column.method)


def _compare(store: Store, way: Way, line: MethodLine, other: MethodLine) -> Comparison:
    first, second = line.column, other.column
    where = {name: way.axes[name] for name in AXES if name != "sequence"}
    if way.is_stream:
        where["corruption"] = way.axes["sequence"]
    return compare(
        store,
        first.label,
        second.label,
        checkpoint=first.checkpoint,
        data=way.facets["data"],
        settings=[first.settings, second.settings],
        stop=[first.stop, second.stop],
        **where,
    )
