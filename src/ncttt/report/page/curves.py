"""Accuracy after each number of steps, where rows were measured at several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncttt.base.errors import InputError
from ncttt.report.page.ways import MethodLine, Way
from ncttt.report.table import average


@dataclass(frozen=True)
class Curve:
    """Accuracy in percent of one method by its number of steps: over all corruptions, and on each."""

    line: MethodLine
    mean: dict[int, float]
    each: dict[str, dict[int, float]]


def curves_of(way: Way) -> list[Curve]:
    """A curve for each method that has several step counts; each was adapted once and predicted on the way."""
    found = (_curve(line, way.scored) for line in way.lines)
    return [curve for curve in found if curve is not None]


def accuracy_at(row: Mapping[str, Any]) -> dict[int, float]:
    """Accuracy in percent by step count.

    >>> accuracy_at({"accuracy_at": '{"0": 0.5, "4": 0.75}'})
    {0: 50.0, 4: 75.0}
    """
    text = row.get("accuracy_at") or "{}"
    try:
        return {int(count): 100 * float(value) for count, value in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"accuracy_at is a JSON object of step counts; {row.get('method')} has {text!r}") from None


def _curve(line: MethodLine, scored: Sequence[str]) -> Curve | None:
    each: dict[str, list[dict[int, float]]] = {}
    for row in line.rows:
        if row["corruption"] in scored:
            each.setdefault(row["corruption"], []).append(accuracy_at(row))
    found = [counts for several in each.values() for counts in several]
    common = sorted(set.intersection(*(set(counts) for counts in found))) if found else []
    if len(common) < 2:
        return None
    by_corruption = {name: _means(several, common) for name, several in each.items()}
    return Curve(line, _means(list(by_corruption.values()), common), by_corruption)


def _means(several: Sequence[Mapping[int, float]], counts: Sequence[int]) -> dict[int, float]:
    return {count: average(found[count] for found in several) for count in counts}
