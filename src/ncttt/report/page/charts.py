"""The numbers of the charts as plain JSON values; page.js turns them into options of the charting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ncttt.data.corruptions import CLEAN
from ncttt.report.names import spelled
from ncttt.report.page.collect import Page, SetupView
from ncttt.report.page.curves import Drift
from ncttt.report.page.lines import MethodLine
from ncttt.report.page.looks import Look
from ncttt.report.shares import Share

FAINT = -15.0  # points of gain, below which a method would squeeze all others into one end of an axis
CROWD = 9  # lines; beyond them variants of a method wait for a reader to tick them


def chart_data(page: Page) -> dict[str, Any]:
    """Every setup with its lines, and accuracies by severity; numbers are rounded to what a reader can see."""
    return {
        "main": page.views.index(page.main),
        "setups": [_setup(view, page) for view in page.views],
        "severities": [
            {"values": list(group.values), "lines": {name: _rounded(own) for name, own in group.accuracy.items()}}
            for group in page.groups
        ],
    }


def _setup(view: SetupView, page: Page) -> dict[str, Any]:
    setup = view.setup
    return {
        "name": setup.name,
        "facets": {facet.name: setup.facets[facet.name] for facet in page.varying if facet.name in setup.facets},
        "says": dict(view.says),
        "corruptions": [spelled(name) for name in setup.corruptions],
        "clean": setup.corruptions.index(CLEAN) if CLEAN in setup.corruptions and len(setup.corruptions) > 1 else None,
        "severity": page.groups.index(view.group) if view.group else None,
        "parts": [spelled(name) for name in view.streams[0].parts] if view.streams else [],
        "lines": [_line(line, view, page.looks) | {"ticked": _is_ticked(line, view)} for line in view.shown],
    }


def _is_ticked(line: MethodLine, view: SetupView) -> bool:
    """Whether charts with a legend show it at first."""
    if line in view.setup.ranked[:1]:
        return True
    is_variant = line.column.label != line.column.method
    return not (len(view.shown) > CROWD and is_variant) and (line.gain is None or line.gain.mean > FAINT)


def _line(line: MethodLine, view: SetupView, looks: Mapping[str, Look]) -> dict[str, Any]:
    look, names = looks[line.name], view.setup.corruptions
    shares = {share.corruptions[0]: share for share in line.share_of}
    curve = next((curve for curve in view.curves if curve.line is line), None)
    drift = next((drift for drift in view.drifts if drift.line is line), None)
    stream = next((stream for stream in view.streams if stream.column == line.column), None)
    return {
        "name": line.name,
        "model": line.model,
        "source": line.column.method == "source",
        "colour": look.colour,
        "form": look.form,
        "mean": line.mean and _round(line.mean.mean),
        "deviation": line.mean and _round(line.mean.deviation),
        "gain": line.gain and _round(line.gain.mean),
        "each": _rounded(line.each[name].mean if name in line.each else None for name in names),
        "share": _share(line.share),
        "shares": [_share(shares.get(name)) for name in names] if shares else [],
        "milliseconds": _round(line.milliseconds),
        "curve": [[count, _round(value)] for count, value in curve.mean.items()] if curve else [],
        "stream": [[end, _round(value)] for end, value in zip(stream.ends, stream.accuracy, strict=True)]
        if stream
        else [],
        "drift": _scores(drift),
    }


def _share(share: Share | None) -> list[float | None] | None:
    return None if share is None else _rounded((share.source, share.statistics, share.steps))


def _scores(drift: Drift | None) -> Sequence[Sequence[Any]]:
    scores = drift.scores if drift else ()
    return [
        [score.corruption, round(score.before, 4), round(score.after, 4), _round(score.accuracy)] for score in scores
    ]


def _rounded(values: Any) -> list[float | None]:
    return [_round(value) for value in values]


def _round(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)
