"""What each chart shows, in one sentence: it stands over the chart, and a screen reader says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncttt.report.names import spelled
from ncttt.report.page.curves import Curve, Drift
from ncttt.report.page.evidence import Stream
from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.page.severities import Severities
from ncttt.report.page.words import listed, percent, points
from ncttt.report.table import Table, average

NAMED = 3  # methods in the sentence of a table


def hero_of(setup: Setup) -> MethodLine | None:
    """The line that sentences are about: the most accurate one that adapts, or else the most accurate."""
    ranked = setup.ranked
    return next((line for line in ranked if line.column.method != "source"), ranked[0] if ranked else None)


def of_corruptions(setup: Setup) -> str:
    """Where the hero gains most and least, or is best and worst where no source was measured."""
    hero = hero_of(setup)
    if hero is None or not setup.scored:
        return ""
    gains = {name: gain for name in setup.scored if (gain := gain_on(setup, hero, name)) is not None}
    if len(gains) < 2:
        each = {name: hero.each[name].mean for name in setup.scored if name in hero.each}
        low, high = min(each, key=each.__getitem__), max(each, key=each.__getitem__)
        if low == high:
            return f"{hero.name} has {percent(each[low])} on {spelled(low)}."
        return f"{hero.name} has {percent(each[high])} on {spelled(high)} and {percent(each[low])} on {spelled(low)}."
    most, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    if points(gains[most]) == points(gains[least]):
        return f"{hero.name} gains {points(gains[most])} points on every corruption."
    big, small = ("gains most", "least") if gains[most] > 0 else ("loses least", "most")
    return (
        f"{hero.name} {big} on {spelled(most)} ({points(gains[most])} points) and {small} on {spelled(least)} "
        f"({points(gains[least])})."
    )


def gain_on(setup: Setup, line: MethodLine, corruption: str) -> float | None:
    """Points over the same checkpoint without adaptation on one corruption."""
    same = [other for other in setup.lines if other.column.checkpoint == line.column.checkpoint]
    source = next((other for other in same if other.column.method == "source"), None)
    if source is None or corruption not in source.each or corruption not in line.each:
        return None
    return line.each[corruption].mean - source.each[corruption].mean


def of_shares(setup: Setup) -> str:
    """What the gain of the best method with steps is made of."""
    own = next((line for line in setup.ranked if line.share), None)
    if own is None or own.share is None:
        return ""
    share = own.share
    return (
        f"Of the {points(share.adapted - share.source)} points of {own.name}, batch statistics give "
        f"{points(share.statistics)} and its steps {points(share.steps)}."
    )


def of_severities(group: Severities) -> str:
    """How much the source and the most accurate method lose from the lowest to the highest severity."""
    ends = {name: (own[0], own[-1]) for name, own in group.accuracy.items()}
    whole = {name: (first, last) for name, (first, last) in ends.items() if first is not None and last is not None}
    if not whole:
        return ""
    best = max(whole, key=lambda name: whole[name][1])
    named = dict.fromkeys(name for name in ("Source", best) if name in whole)
    told = [f"{name} goes from {percent(whole[name][0])} to {percent(whole[name][1])}" for name in named]
    return f"From severity {group.values[0]} to {group.values[-1]}, {listed(told)}."


def of_streams(setup: Setup, streams: Sequence[Stream]) -> str:
    """The hero at the beginning and at the end of its stream."""
    hero = hero_of(setup)
    own = next((stream for stream in streams if hero and stream.column == hero.column), None)
    if own is None or hero is None:
        return ""
    part = max(1, len(own.accuracy) // 4)
    first, last = average(own.accuracy[:part]), average(own.accuracy[-part:])
    return f"{hero.name} has {percent(first)} in the first quarter of the stream and {percent(last)} in the last."


def of_cost(setup: Setup) -> str:
    """The time of the hero against that of the source."""
    hero = hero_of(setup)
    source = next((line for line in setup.lines if line.column.method == "source" and not line.repeated), None)
    if hero is None or hero.milliseconds is None:
        return ""
    told = f"{hero.name} takes {hero.milliseconds:.1f} ms per image"
    if source is None or source.milliseconds is None or source is hero:
        return f"{told}."
    ratio = hero.milliseconds / source.milliseconds
    return f"{told}, {ratio:.{0 if ratio >= 10 else 1}f} times as long as the model without adaptation."


def of_steps(curves: Sequence[Curve]) -> str:
    """The curve that rises highest: where it begins and where it peaks."""
    if not curves:
        return ""
    best = max(curves, key=lambda curve: max(curve.mean.values()))
    first, peak = min(best.mean), max(best.mean, key=best.mean.__getitem__)
    return (
        f"{best.line.name} has {percent(best.mean[first])} after {first} steps and is highest after {peak}: "
        f"{percent(best.mean[peak])}."
    )


def of_drifts(drifts: Sequence[Drift]) -> str:
    """How the mean score of the first method moves."""
    if not drifts:
        return ""
    before, after = (average(getattr(score, name) for score in drifts[0].scores) for name in ("before", "after"))
    return (
        f"The mean shift score of {drifts[0].line.name} goes from {before:.3f} to {after:.3f} (1 is like the source)."
    )


def of_survival(tables: Sequence[Table]) -> str:
    """The methods that survive most streams of the first table, which has them first."""
    if not tables:
        return ""
    (first, count), *others = [(line.name, line.cells[1]) for line in tables[0].lines[:NAMED]]
    return f"{listed([f'{first} survives {count} streams', *(f'{name} {own}' for name, own in others)])}."


def takeaways(
    setup: Setup,
    first: str,
    curves: Sequence[Curve],
    drifts: Sequence[Drift],
    streams: Sequence[Stream],
    group: Severities | None,
) -> Mapping[str, str]:
    """The sentence of each chart of a setup; a chart without one has nothing to show."""
    return {
        "ranking": first,
        "corruptions": of_corruptions(setup),
        "severity": of_severities(group) if group else "",
        "shares": of_shares(setup),
        "stream": of_streams(setup, streams),
        "cost": of_cost(setup),
        "steps": of_steps(curves),
        "drift": of_drifts(drifts),
    }
