"""What statistics and steps gave.

The shares of the gain of each method, from rows alone: batch statistics, and the steps on top of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.selection import Row
from ncttt.report.figures.shared.style import BLUE, GREY, INK, ORANGE, legend_below, new_figure, styled
from ncttt.report.names import spelled_method
from ncttt.report.shares import Share, shares_of_rows

PLACE = 9
NEEDS = "rows"
THICKNESS = 0.26
PARTS: dict[str, tuple[Callable[[Share], float], dict[str, Any]]] = {
    "batch statistics": (lambda share: share.statistics, {"color": BLUE}),
    "steps": (lambda share: share.steps, {"color": ORANGE, "edgecolor": INK, "linewidth": 0.6, "hatch": "///"}),
    "both: the gain": (lambda share: share.statistics + share.steps, {"facecolor": "white", "edgecolor": INK}),
}


def make(request: Request) -> Figure:
    """The figure of the rows."""
    return draw_attribution(request.chosen_rows)


@styled
def draw_attribution(rows: Iterable[Row]) -> Figure:
    """Bars in percentage points over the same checkpoint as it is, mean over corruptions (not the clean images).

    The rows need, for each checkpoint, the methods `source` and `ptbn` next to those that learn.
    """
    shares = shares_of_rows(rows)
    if not shares:
        raise InputError(
            "no gain can be divided: it needs rows of `source`, of `ptbn` and of a method with batch statistics that "
            "learns, on the same checkpoint and images"
        )
    figure = new_figure(height=0.75 * len(shares) + 1.25)
    axes = figure.subplots()
    for number, (name, (points, look)) in enumerate(PARTS.items()):
        places = [line + (number - 1) * THICKNESS for line in range(len(shares))]
        bars = axes.barh(places, [points(share) for share in shares], THICKNESS, label=name, **look)
        axes.bar_label(bars, fmt="{:+.2f}", padding=4)
    axes.axvline(0, color=GREY, lw=1)
    axes.set_yticks(range(len(shares)), labels=names_of(shares))
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("gain over the same model as it is, percentage points")
    axes.set_title(f"mean of {_corruptions(shares)}")
    axes.tick_params(axis="y", length=0)
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


def names_of(shares: Sequence[Share]) -> list[str]:
    """What tells the shares apart: the method, its checkpoint and its setup, where they differ."""
    checkpoints = {share.checkpoint for share in shares}
    differing = [name for name in shares[0].setup if len({str(share.setup[name]) for share in shares}) > 1]
    return [
        "\n".join(
            [
                spelled_method(share.method),
                *([share.checkpoint] if len(checkpoints) > 1 and share.checkpoint not in share.method else []),
                *(_spelled(name, share.setup[name]) for name in differing),
            ]
        )
        for share in shares
    ]


def _spelled(name: str, value: object) -> str:
    return str(value) if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"


def _corruptions(shares: Sequence[Share]) -> str:
    counts = sorted({len(share.corruptions) for share in shares})
    text = " or ".join(map(str, counts))
    return f"{text} corruption{'s' if counts != [1] else ''}"
