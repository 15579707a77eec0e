"""What the gain of each method is made of: batch statistics, and the steps on top of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.report.figures.selection import Row
from ncttt.report.figures.style import BLUE, GREY, INK, ORANGE, legend_below, new_figure, styled
from ncttt.report.paper.names import spelled_method
from ncttt.report.shares import Share, shares

THICKNESS = 0.26
PARTS: dict[str, tuple[Callable[[Share], float], dict[str, Any]]] = {
    "batch statistics": (lambda share: share.statistics, {"color": BLUE}),
    "steps": (lambda share: share.steps, {"color": ORANGE, "edgecolor": INK, "linewidth": 0.6, "hatch": "///"}),
    "both: the gain": (lambda share: share.statistics + share.steps, {"facecolor": "white", "edgecolor": INK}),
}


@styled
def draw_attribution(rows: Iterable[Row]) -> Figure:
    """Bars in percentage points over the same checkpoint as it is, mean over corruptions (not the clean images).

    The rows need, for each checkpoint, the methods `source` and `ptbn` beside those that learn.
    """
    found = shares(rows)
    if not found:
        raise InputError(
            "no gain can be divided: it needs rows of `source`, of `ptbn` and of a method with batch statistics that "
            "learns, on the same checkpoint and images"
        )
    figure = new_figure(height=0.75 * len(found) + 1.25)
    axes = figure.subplots()
    for number, (name, (points, look)) in enumerate(PARTS.items()):
        places = [line + (number - 1) * THICKNESS for line in range(len(found))]
        bars = axes.barh(places, [points(share) for share in found], THICKNESS, label=name, **look)
        axes.bar_label(bars, fmt="{:+.2f}", padding=4)
    axes.axvline(0, color=GREY, lw=1)
    axes.set_yticks(range(len(found)), labels=names_of(found))
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("gain over the same model as it is, percentage points")
    axes.set_title(f"mean of {_corruptions(found)}")
    axes.tick_params(axis="y", length=0)
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


def names_of(found: Sequence[Share]) -> list[str]:
    """What tells the shares apart: the method, its checkpoint and its way, where they differ."""
    checkpoints = {share.checkpoint for share in found}
    differing = [name for name in found[0].way if len({str(share.way[name]) for share in found}) > 1]
    return [
        "\n".join(
            [
                spelled_method(share.method),
                *([share.checkpoint] if len(checkpoints) > 1 and share.checkpoint not in share.method else []),
                *(_spelled(name, share.way[name]) for name in differing),
            ]
        )
        for share in found
    ]


def _spelled(name: str, value: object) -> str:
    return str(value) if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"


def _corruptions(found: Sequence[Share]) -> str:
    counts = sorted({len(share.corruptions) for share in found})
    text = " or ".join(map(str, counts))
    return f"{text} corruption{'s' if counts != [1] else ''}"
