"""Accuracy after each number of steps, where rows were measured at several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ncttt.report.accuracy import accuracy_at
from ncttt.report.page.setups import MethodLine, Setup
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
