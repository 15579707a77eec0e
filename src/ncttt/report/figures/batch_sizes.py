"""Accuracy against batch size.

A line for each method and a panel for each kind of stream: what is best with many images at a time need not be with
few. The unadapted model does not depend on the batch, so it is a flat line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN
from ncttt.report.figures.shared.methods import Shown, explain, main_rows, setup_title, shown_methods
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.selection import Row, check_one_setup
from ncttt.report.figures.shared.style import new_figure, styled
from ncttt.report.names import Column, column_of
from ncttt.report.streams import kind_of, kind_order
from ncttt.report.table import average

PLACE = 15
NEEDS = "rows"
COLUMNS, PANEL_HEIGHT = 2, 2.5
VARYING = ("method", "checkpoint", "settings", "order", "batch_size")
Curve = dict[int, float]  # accuracy in percent by batch size
Curves = dict[str, dict[Column, Curve]]


def make(request: Request) -> Figure:
    """The figure of the rows."""
    return draw_batch_sizes(request.chosen_rows)


@styled
def draw_batch_sizes(rows: Iterable[Row]) -> Figure:
    """Mean accuracy over corruptions and seeds, by the number of images in a batch; clean images do not count."""
    rows = list(rows)
    curves = curves_of(rows)
    shown = shown_methods(_means(curves))
    lines = math.ceil(len(curves) / COLUMNS)
    figure = new_figure(height=PANEL_HEIGHT * lines + 1.2)
    panels = figure.subplots(lines, min(COLUMNS, len(curves)), squeeze=False, sharex=True, sharey=True).flatten()
    for axes, (kind, own) in zip(panels, curves.items(), strict=False):
        _draw(axes, own, shown)
        axes.set_title(kind)
    sizes = sorted({size for own in curves.values() for curve in own.values() for size in curve})
    panels[0].set_xscale("log", base=2)
    panels[0].set_xticks(sizes, labels=[str(size) for size in sizes])
    for axes in panels[len(curves) :]:
        axes.remove()
    for axes in panels[: max(0, len(curves) - COLUMNS)]:
        axes.tick_params(labelbottom=False)
    for axes in panels[max(0, len(curves) - COLUMNS) : len(curves)]:
        axes.tick_params(labelbottom=True)  # also where no panel is below
        axes.set_xlabel("images in a batch")
    figure.suptitle(setup_title(rows[0]), x=0.01, ha="left")
    figure.supylabel("accuracy, %")
    drawn = {
        name: line
        for axes in panels[: len(curves)]
        for line, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    names = [name for name in shown.names.values() if name in drawn]
    explain(figure, [drawn[name] for name in names], names, shown.left_out)
    return figure


def curves_of(rows: Iterable[Row]) -> Curves:
    """The curve of every method on each kind of stream, without batch sizes that lack a corruption or a seed."""
    rows = main_rows(row for row in rows if row["corruption"] != CLEAN)
    check_one_setup(rows, but=VARYING)
    if len({row["batch_size"] for row in rows}) < 2:
        raise InputError(
            "the figure compares batch sizes, and the rows have one; measure more by `ncttt bench` with "
            "`batch_sizes: [1, 4, 16, 64]`"
        )
    curves: Curves = {}
    for row in sorted(rows, key=kind_order):
        curves.setdefault(kind_of(row), {})
    for kind, own in curves.items():
        here = [row for row in rows if kind_of(row) == kind]
        places = {_place(row) for row in here}
        for column in dict.fromkeys(map(column_of, here)):
            own[column] = _curve([row for row in here if column_of(row) == column], places)
    return curves


def _curve(rows: Sequence[Row], places: set[tuple[Any, ...]]) -> Curve:
    sizes = sorted({row["batch_size"] for row in rows})
    by_size = {size: [row for row in rows if row["batch_size"] == size] for size in sizes}
    return {
        size: 100 * average(row["accuracy"] for row in own)
        for size, own in by_size.items()
        if {_place(row) for row in own} == places
    }


def _place(row: Row) -> tuple[Any, ...]:
    return row["corruption"], row["seed"]


def _means(curves: Curves) -> dict[Column, float]:
    """Mean over all that a method was measured on."""
    every: dict[Column, list[float]] = {}
    for own in curves.values():
        for column, curve in own.items():
            every.setdefault(column, []).extend(curve.values())
    return {column: average(values) for column, values in every.items() if values}


def _draw(axes: Axes, curves: Mapping[Column, Curve], shown: Shown) -> None:
    for column, name in shown.names.items():
        curve = curves.get(column)
        if not curve:
            continue
        look = shown.looks[column]
        if column.method == "source":
            axes.axhline(average(curve.values()), label=name, **look)
        else:
            axes.plot(list(curve), list(curve.values()), label=name, **{"marker": "x", "ms": 5, **look})
    axes.minorticks_off()
    axes.grid()
