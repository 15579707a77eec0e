"""The shift score before and after adaptation, next to the accuracy, corruption by corruption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ncttt.report.accuracy import Row
from ncttt.report.names import corruption_order, spelled
from ncttt.report.page.setups import MethodLine, Setup
from ncttt.report.table import average


@dataclass(frozen=True)
class Score:
    """One corruption: the mean probability of being source-like, from 0 to 1, and the accuracy in percent."""

    corruption: str
    before: float
    after: float
    accuracy: float


@dataclass(frozen=True)
class Drift:
    """The scores of one method in one setup."""

    line: MethodLine
    scores: tuple[Score, ...]


def drifts_of(setup: Setup) -> list[Drift]:
    """Every method whose rows have scores; a stream of many corruptions has one for all, which says little."""
    if setup.is_stream:
        return []
    drifts = [Drift(line, _scores(line)) for line in setup.lines]
    return [drift for drift in drifts if drift.scores]


def _scores(line: MethodLine) -> tuple[Score, ...]:
    by_corruption: dict[str, list[Row]] = {}
    for row in line.rows:
        if row.get("shift_before") is not None and row.get("shift_after") is not None:
            by_corruption.setdefault(row["corruption"], []).append(row)
    return tuple(_score(name, by_corruption[name]) for name in sorted(by_corruption, key=corruption_order))


def _score(corruption: str, rows: Sequence[Row]) -> Score:
    before, after, accuracy = (
        average(row[name] for row in rows) for name in ("shift_before", "shift_after", "accuracy")
    )
    return Score(spelled(corruption), before, after, 100 * accuracy)
