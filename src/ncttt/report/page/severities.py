"""Accuracy by severity: setups that differ in nothing else, over the corruptions that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.table import average


@dataclass(frozen=True)
class Severities:
    """Mean accuracy in percent of each method by name at each severity, None where a corruption is missing."""

    setups: tuple[Setup, ...]
    values: tuple[int, ...]
    corruptions: tuple[str, ...]
    accuracy: dict[str, tuple[float | None, ...]]

    @property
    def facets(self) -> dict[str, str]:
        """What its setups have in common."""
        return {name: value for name, value in self.setups[0].facets.items() if name != "severity"}


def severities_of(setups: Sequence[Setup]) -> list[Severities]:
    """A group for each set of setups with several severities."""
    groups: dict[Any, list[Setup]] = {}
    for setup in setups:
        if setup.axes["severity"]:
            rest = tuple((name, value) for name, value in setup.axes.items() if name != "severity")
            groups.setdefault((setup.facets["data"], rest), []).append(setup)
    return [group for each in groups.values() if (group := _group(each)) is not None]


def _group(setups: Sequence[Setup]) -> Severities | None:
    common = set.intersection(*(set(setup.scored) for setup in setups))
    scored = tuple(name for name in setups[0].scored if name in common)
    if len(setups) < 2 or not scored:
        return None
    in_order = sorted(setups, key=lambda setup: setup.axes["severity"])
    each = [{line.name: line for line in setup.lines if not line.repeated} for setup in in_order]
    names = dict.fromkeys(name for lines in each for name in lines)
    accuracy = {name: tuple(_mean(lines.get(name), scored) for lines in each) for name in names}
    values = tuple(setup.axes["severity"] for setup in in_order)
    several = {name: own for name, own in accuracy.items() if sum(value is not None for value in own) > 1}
    return Severities(tuple(in_order), values, scored, several) if several else None


def _mean(line: MethodLine | None, corruptions: Sequence[str]) -> float | None:
    if line is None or any(name not in line.each for name in corruptions):
        return None
    return average(line.each[name].mean for name in corruptions)
