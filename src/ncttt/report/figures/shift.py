"""Shift score against error.

Does the score foresee the error? Both for each set of images, with their rank correlation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN, CORRUPTIONS
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.selection import OF_CORRUPTIONS, Row, check_one_setup, rows_of_method
from ncttt.report.figures.shared.style import BLUE, GREY, INK, ORANGE, SKY, VERMILION, legend_below, new_figure, styled
from ncttt.report.shares import OWN_NORM, same_images, unadapted
from ncttt.report.table import average

PLACE = 10
NEEDS = "rows"
LOOKS = {
    "clean": {"marker": "*", "s": 110, "color": "white"},
    "noise": {"marker": "o", "color": VERMILION},
    "blur": {"marker": "s", "color": BLUE},
    "weather": {"marker": "^", "color": SKY},
    "digital": {"marker": "D", "color": ORANGE},
    "extra": {"marker": "X", "color": GREY},
}
FAMILIES = {CLEAN: "clean"} | dict(
    zip(CORRUPTIONS, ["noise"] * 3 + ["blur"] * 4 + ["weather"] * 4 + ["digital"] * 4, strict=True)
)
TITLES = {"source": "the model as it is", "ptbn": "with batch statistics"}
FEWEST, LEVEL = 4, 0.05  # points that a rank correlation needs; above this p nothing was shown


@dataclass(frozen=True)
class Point:
    """Mean shift score of a corruption at a severity, and the error in percent there without any step."""

    corruption: str
    severity: int
    score: float
    error: float


def make(request: Request) -> Figure:
    """The figure of the method's rows."""
    return draw_shift(request.chosen_rows, request.method_of_rows)


@styled
def draw_shift(rows: Iterable[Row], method: str = "nc_ttt") -> Figure:
    """Error against the score of `method` before its first step: of the model as it is, and with batch statistics.

    The rows need `shift_before`, which methods with a score leave, and rows of `source` or `ptbn` on the same
    checkpoint and images.
    """
    rows = list(rows)
    panels = {name: points for name in OWN_NORM if (points := points_of(rows, method, name))}
    if not panels:
        raise InputError(f"no errors to show next to the score of {method!r}: measure `source` on the same checkpoint")
    figure = new_figure(height=3.9)
    for axes, (name, points) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        _draw(axes, points)
        axes.set_title(f"{TITLES[name]}\n{verdict(points)}")
    handles = {
        name: handle for axes in figure.axes for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    legend_below(figure, list(handles.values()), list(handles))
    return figure


def points_of(rows: Iterable[Row], method: str, still: str) -> list[Point]:
    """A point for each corruption and severity, mean over seeds, with the error of `still`: source or ptbn."""
    rows = list(rows)
    scored = [row for row in rows_of_method(rows, method) if row.get("shift_before") is not None]
    scored = [row for row in scored if row["stop"] is None] or scored  # a rule that stops changes no first score
    if not scored:
        raise InputError(f"no row of {method!r} has a shift score: it comes with the method's branch")
    check_one_setup(scored, but=OF_CORRUPTIONS)
    others = unadapted(rows)
    pairs: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for row in scored:
        other = others.get((still, *same_images(row)))
        if other is not None:
            own = pairs.setdefault((row["corruption"], row["severity"]), [])
            own.append((row["shift_before"], 100 * (1 - other["accuracy"])))
    return [Point(*key, *(average(pair[n] for pair in own) for n in (0, 1))) for key, own in pairs.items()]


def verdict(points: Sequence[Point]) -> str:
    """Spearman's rank correlation in words that claim no more than it shows.

    >>> verdict([Point("fog", 5, 0.5, 20.0)])
    'rank correlation: too few sets of images (1)'
    """
    if len(points) < FEWEST:
        return f"rank correlation: too few sets of images ({len(points)})"
    scores, errors = [point.score for point in points], [point.error for point in points]
    if len(set(scores)) == 1 or len(set(errors)) == 1:
        return "rank correlation: none, for one of them never changes"
    correlation, chance = (float(value) for value in tuple(spearmanr(scores, errors)))
    shown = f"rank correlation {correlation:+.2f}".replace("-", "\N{MINUS SIGN}")
    if math.isnan(chance) or chance >= LEVEL:
        return f"{shown}, p = {chance:.2f}: nothing shown"
    return f"{shown}, p {'= ' + format(chance, '.3f') if chance >= 0.001 else '< 0.001'}, {len(points)} sets"


def _draw(axes: Axes, points: Sequence[Point]) -> None:
    for family, look in LOOKS.items():
        shown = [point for point in points if FAMILIES.get(point.corruption, "extra") == family]
        if shown:
            places = [point.score for point in shown], [point.error for point in shown]
            axes.scatter(*places, label=family, zorder=3, **{"s": 46, "edgecolors": INK, "linewidths": 0.7} | look)
    axes.set(xlabel="shift score (mean in-distribution probability)", ylabel="error, %")
    axes.margins(0.08)
    axes.grid()
