"""What the page draws as lines: accuracy after each number of steps, and the drift of the shift score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ncttt.report.accuracy import Row, accuracy_at
from ncttt.report.names import corruption_order, spelled
from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.table import average


@dataclass(frozen=True)
class Curve:
    """Accuracy in percent of one method by its number of steps: over all corruptions, and on each."""

    line: MethodLine
    mean: dict[int, float]
    each: dict[str, dict[int, float]]


def curves_of(setup: Setup) -> list[Curve]:
    """A curve for each method that has several step counts; each was adapted once and predicted on the way."""
    curves = (_curve(line, setup.scored) for line in setup.lines)
    return [curve for curve in curves if curve is not None]


def _curve(line: MethodLine, scored: Sequence[str]) -> Curve | None:
    each: dict[str, list[dict[int, float]]] = {}
    for row in line.rows:
        if row["corruption"] in scored:
            each.setdefault(row["corruption"], []).append(accuracy_at(row))
    counts = [set(by_steps) for several in each.values() for by_steps in several]
    common = sorted(set.intersection(*counts)) if counts else []
    if len(common) < 2:
        return None
    by_corruption = {name: _means(several, common) for name, several in each.items()}
    return Curve(line, _means(list(by_corruption.values()), common), by_corruption)


def _means(several: Sequence[Mapping[int, float]], counts: Sequence[int]) -> dict[int, float]:
    return {count: average(by_steps[count] for by_steps in several) for count in counts}


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
