"""Accuracy by iterations (Fig. 6).

A panel for each corruption. The paper adapts for a fixed number of iterations. Each panel marks where accuracy is
highest, which nobody knows without labels, and where the stop rule ends, which needs none. Where iterations also move
the BatchNorm statistics, as in the authors' code, a dashed line shows as many passes without any gradient.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN
from ncttt.report.accuracy import accuracy_at
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.selection import Row, check_one_setup, rows_of_method
from ncttt.report.figures.shared.style import BLUE, INK, ORANGE, VERMILION, legend_below, new_figure, styled
from ncttt.report.names import column_of, corruption_order, spelled, spelled_method
from ncttt.report.table import average

PLACE = 6
NEEDS = "rows"
COLUMNS, PANEL_HEIGHT = 4, 1.62
LEAST_SPAN = 1.0  # percentage points that a panel shows, so that noise does not look like a trend
SAME = ("data", "split", "corruption", "severity", "constants", "checkpoint", "protocol", "order", "batch_size")


@dataclass(frozen=True)
class Curve:
    """Accuracy in percent after each count of iterations.

    `stop` is where the stop rule ends, as (count, accuracy); `still` the accuracy after passes without a gradient, by
    their count.
    """

    name: str
    counts: tuple[int, ...]
    accuracies: tuple[float, ...]
    stop: tuple[float, float] | None = None
    still: tuple[tuple[int, float], ...] = ()

    @property
    def peak(self) -> tuple[int, float]:
        """The first count with the highest accuracy, and that accuracy."""
        best = max(self.accuracies)
        return self.counts[self.accuracies.index(best)], best


def make(request: Request) -> Figure:
    """The figure of the method's rows."""
    return draw_iterations(request.chosen_rows, request.method_of_rows)


@styled
def draw_iterations(rows: Iterable[Row], method: str = "nc_ttt") -> Figure:
    """A panel for each corruption that the method was measured on after several counts, and one for their mean.

    The rows are those of `ncttt bench` with `steps: [0, 1, ...]`; those of the same method with a `stop` are marked.
    All panels show the same span of accuracy, each around its own.
    """
    curves = curves_of(rows, method)
    lines = math.ceil(len(curves) / COLUMNS)
    figure = new_figure(height=PANEL_HEIGHT * lines + 0.9)
    panels = figure.subplots(lines, COLUMNS, squeeze=False).flatten()
    span = max(LEAST_SPAN, *(max(_shown(curve)) - min(_shown(curve)) for curve in curves))
    for axes, curve in zip(panels, curves, strict=False):
        _draw(axes, curve, span)
    for axes in panels[len(curves) :]:
        axes.remove()
    for axes in panels[: len(curves) - COLUMNS if len(curves) > COLUMNS else 0]:
        axes.tick_params(labelbottom=False)
    for axes in panels[max(0, len(curves) - COLUMNS) : len(curves)]:
        axes.set_xlabel("iterations")
    figure.supylabel("accuracy, %")
    explained = next((axes for axes, curve in zip(panels, curves, strict=False) if curve.stop), panels[0])
    handles, names = explained.get_legend_handles_labels()
    legend_below(figure, handles, [spelled_method(method), *names[1:]])
    return figure


def curves_of(rows: Iterable[Row], method: str) -> list[Curve]:
    """The curve of each corruption, mean over seeds, and that of their mean; clean images are not in the mean."""
    rows = list(rows)
    moving = [row for row in rows_of_method(rows, method) if row["stop"] is None and len(accuracy_at(row)) > 1]
    if not moving:
        raise InputError(
            f"no row of {method!r} has the accuracy after several counts of iterations; measure it by "
            "`ncttt bench` with `steps: [0, 1, 5, 20, 100]`"
        )
    check_one_setup(moving)
    stopping, passing = _stopping(rows, moving), _passing(rows, moving)
    names = sorted({row["corruption"] for row in moving}, key=corruption_order)
    curves = {name: _curve(name, moving, stopping, passing) for name in names}
    shifted = [curve for name, curve in curves.items() if name != CLEAN]
    return [*curves.values(), _mean(shifted)] if len(shifted) > 1 else list(curves.values())


def _stopping(rows: Sequence[Row], moving: Sequence[Row]) -> list[Row]:
    """The rows of the same method on the same images that stop by a rule."""
    method, places = column_of(moving[0]).method, {_place(row) for row in moving}
    own = [row for row in rows if row["stop"] is not None and column_of(row).method == method]
    same = [row for row in own if _place(row) in places]
    check_one_setup(same)
    return same


def _passing(rows: Sequence[Row], moving: Sequence[Row]) -> list[tuple[int, Row]]:
    """Rows on the same images without a gradient, after as many passes as iterations would have moved statistics."""
    if _passes(moving[0]) is None:
        return []
    places = {_place(row) for row in moving}
    own = [(0 if _method(row) == "source" else _passes(row), row) for row in rows if _place(row) in places]
    return [(count, row) for count, row in own if count is not None and _method(row) in ("source", "ptbn")]


def _passes(row: Row) -> int | None:
    norm = json.loads(row.get("settings") or "{}").get("norm")
    match = re.fullmatch(r"running\(.*, (\d+)\)", norm) if isinstance(norm, str) else None
    return int(match[1]) if match else None


def _method(row: Row) -> str:
    return column_of(row).method


def _place(row: Row) -> tuple[object, ...]:
    return tuple(row.get(name) for name in SAME)


def _curve(
    corruption: str, moving: Sequence[Row], stopping: Sequence[Row], passing: Sequence[tuple[int, Row]]
) -> Curve:
    each = [accuracy_at(row) for row in moving if row["corruption"] == corruption]
    counts = sorted(set.intersection(*(set(by_steps) for by_steps in each)))
    accuracies = tuple(average(by_steps[count] for by_steps in each) for count in counts)
    own = [row for row in stopping if row["corruption"] == corruption]
    stop = (average(row["steps_taken"] for row in own), 100 * average(row["accuracy"] for row in own)) if own else None
    passes: dict[int, list[float]] = {}
    for count, row in passing:
        if row["corruption"] == corruption:
            passes.setdefault(count, []).append(100 * row["accuracy"])
    still = tuple((count, average(passes[count])) for count in sorted(passes))
    return Curve(spelled(corruption), tuple(counts), accuracies, stop, still)


def _mean(curves: Sequence[Curve]) -> Curve:
    counts = sorted(set.intersection(*(set(curve.counts) for curve in curves)))
    each = [dict(zip(curve.counts, curve.accuracies, strict=True)) for curve in curves]
    stops = [curve.stop for curve in curves if curve.stop]
    stop = (average(s[0] for s in stops), average(s[1] for s in stops)) if len(stops) == len(curves) else None
    name = f"Mean of {len(curves)}"
    passes = [dict(curve.still) for curve in curves]
    common = sorted(set.intersection(*(set(one) for one in passes)))
    still = tuple((count, average(one[count] for one in passes)) for count in common)
    return Curve(name, tuple(counts), tuple(average(one[count] for one in each) for count in counts), stop, still)


def _shown(curve: Curve) -> list[float]:
    return [*curve.accuracies, *([curve.stop[1]] if curve.stop else []), *(accuracy for _, accuracy in curve.still)]


def _draw(axes: Axes, curve: Curve, span: float) -> None:
    count, best = curve.peak
    axes.plot(curve.counts, curve.accuracies, color=BLUE, marker=".", markersize=5, label="accuracy")
    if curve.still:
        axes.plot(*zip(*curve.still, strict=True), "--x", color=VERMILION, markersize=5, label="without gradient")
    axes.plot(count, best, "o", color=ORANGE, markeredgecolor=INK, markersize=7, label="its highest", zorder=4)
    if curve.stop:
        axes.plot(*curve.stop, "D", color="white", markeredgecolor=INK, label="where the stop rule ends", zorder=3)
    middle = (max(_shown(curve)) + min(_shown(curve))) / 2
    axes.set_title(f"{curve.name}\n{best:.1f} % after {count}")
    top = min(middle + 0.62 * span, 100 + 0.06 * span)  # no panel has a number above 100 %
    axes.set(ylim=(top - 1.24 * span, top))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.grid()
