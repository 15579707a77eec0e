"""Which differences are significant, by paired predictions: each method against its own checkpoint without steps, and
the leader of a setup against those close behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncttt.base.errors import InputError
from ncttt.report.accuracy import AXES, Row
from ncttt.report.names import Column
from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.page.setups import setups_of
from ncttt.report.shares import OWN_NORM
from ncttt.report.significance import Comparison, compare
from ncttt.report.table import Number, in_points

if TYPE_CHECKING:
    from ncttt.benchmark.store import Store

CLOSE = 5.0  # points behind the leader; beyond them no interval of a benchmark reaches


@dataclass(frozen=True)
class Verdict:
    """A comparison of two methods, and the `place` of the setup that it belongs to."""

    place: tuple[Any, ...]
    first: Column
    second: Column
    comparison: Comparison

    @property
    def indistinguishable(self) -> bool:
        """Whether there is an interval and it contains zero."""
        difference = self.comparison.overall.difference
        return bool(difference.has_interval and not difference.significant)

    def points(self, corruption: str) -> Number | None:
        """The difference on one corruption, with its interval."""
        compared = self.comparison.each.get(corruption)
        return compared and in_points(compared.difference, star=bool(compared.difference.significant))

    @property
    def text(self) -> str:
        """The difference over all corruptions in points, its interval, and what it means."""
        mean, low, high = (100 * float(value) for value in self.comparison.overall.difference)
        verdict = "is significant" if self.comparison.overall.difference.significant else "is not significant"
        if mean == low == high == 0:
            return "no difference at all"
        if not self.comparison.overall.difference.has_interval:
            return f"{mean:+.2f}, with too few batches to tell whether it is significant"
        return f"{mean:+.2f} (95 % interval {low:+.2f} to {high:+.2f}) {verdict}"


def verdicts_of(store: Store, rows: Iterable[Row]) -> list[Verdict]:
    """Compare every method with batch statistics and with the source, on its own checkpoint, where the store can;
    and the most accurate one with all that are close."""
    return [verdict for setup in setups_of(rows) for verdict in _of_setup(store, setup)]


def _of_setup(store: Store, setup: Setup) -> Iterator[Verdict]:
    pairs = [(line, other) for line in setup.lines for other in setup.lines if _rests_on(line, other)]
    pairs += [(leader, other) for leader, other in _close_races(setup) if not _rests_on(leader, other)]
    for line, other in pairs:
        with suppress(InputError):  # no predictions, too few batches, or rows that are not of the same images
            yield Verdict(setup.place, line.column, other.column, _compare(store, setup, line, other))


def _close_races(setup: Setup) -> Iterator[tuple[MethodLine, MethodLine]]:
    """The leader with each method close behind it."""
    leader, *others = setup.ranked or (None,)
    for other in others:
        if leader and leader.mean and other.mean and leader.mean.mean - other.mean.mean < CLOSE:
            yield leader, other


def _rests_on(line: MethodLine, other: MethodLine) -> bool:
    """Whether the other is the same checkpoint with fewer means: batch statistics need the source's, steps both."""
    still, method = list(OWN_NORM), line.column.method
    if other.column.checkpoint != line.column.checkpoint or other.column.method not in still:
        return False
    return method not in still or still.index(method) > still.index(other.column.method)


def _compare(store: Store, setup: Setup, line: MethodLine, other: MethodLine) -> Comparison:
    first, second = line.column, other.column
    where = {name: setup.axes[name] for name in AXES if name != "sequence"}
    if setup.is_stream:
        where["corruption"] = setup.axes["sequence"]
    return compare(
        store,
        first.label,
        second.label,
        checkpoint=first.checkpoint,
        other_checkpoint=second.checkpoint,
        data=setup.facets["data"],
        settings=sorted({row["settings"] for one in (line, other) for row in one.rows}),  # as the store has them
        stop=[first.stop, second.stop],
        **where,
    )
