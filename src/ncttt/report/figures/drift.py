"""A stream that drifts and comes back: accuracy of the frozen and of the adapting model, and the drift signal.

A model that ships meets clean images, three corruptions and clean images again. Nobody tells it where one ends; labels
only score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.benchmark.drifting import (
    DomainSummary,
    DriftingStream,
    DriftRecord,
    follow,
    monitor_of,
    shifted_mean,
    summaries,
)
from ncttt.data import load
from ncttt.data.class_names import check_same_classes
from ncttt.data.corruptions import CLEAN
from ncttt.data.files.folders import IMAGE_SIZE
from ncttt.methods.settings import method_for
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import BLUE, GREY, INK, VERMILION, new_figure, styled
from ncttt.report.names import spelled
from ncttt.zoo import checkpoint

PLACE = 13
NEEDS = "model"
BATCH, FEWEST = 128, 4  # images of a batch; where that leaves a domain fewer batches than this, they are smaller
LOOKS = {
    "adapted": {"name": "adapted", "color": BLUE, "lw": 2.2, "ls": "-", "zorder": 4},
    "statistics": {"name": "batch statistics", "color": GREY, "lw": 1.1, "ls": "--", "zorder": 3},
    "frozen": {"name": "frozen", "color": VERMILION, "lw": 2.2, "ls": (0, (3, 1)), "zorder": 2},
}
SMALLEST = 1e-300  # of a probability: what is smaller is drawn here
TICKS = {0: "1", 2: "0.01", 10: "1e-10", 100: "1e-100", 300: "1e-300"}


def make(request: Request) -> Figure:
    """The figure of a model and data; the request's images are those of each domain."""
    return draw_drift(drift_records(request))


def drift_records(request: Request) -> list[DriftRecord]:
    """A stream of test images through a model, which a monitor that knows the held-out ones watches."""
    name = request.model or f"{request.data}-small-ncttt"
    model = checkpoint.load(name)
    size = {"image_size": (model.input_shape or (IMAGE_SIZE,))[-1], "resize": model.resize}
    test, held_out = (load(request.data, split, root=request.root, **size) for split in ("test", "val"))
    check_same_classes(model.classes, test.classes, name, request.data)
    stream = DriftingStream(
        data=test,
        images=request.images,
        batch_size=max(1, min(BATCH, request.images // FEWEST)),
        severity=request.severity,
        constants=request.constants,
    )
    settings = {} if request.steps is None else {"steps": request.steps}
    monitor = monitor_of(model, held_out, min(BATCH, len(held_out.images)))
    return list(follow(stream, model, monitor, method_for(model.method, request.method), **settings))


@styled
def draw_drift(records: Sequence[DriftRecord]) -> Figure:
    """Accuracy batch by batch above, with the means of each domain; the monitor's p below, with its alarms."""
    if not records:
        raise InputError("a drifting stream without batches has nothing to show")
    domains, ends = summaries(records), np.cumsum([record.images for record in records])
    figure = new_figure(height=4.8)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[5, 3])
    figure.suptitle(finding(domains), x=0.01, ha="left", fontweight="bold")
    middles = ends - [record.images / 2 for record in records]
    _shade_domains((above, below), domains)
    _draw_accuracy(above, records, middles)
    _write_means(above, domains)
    _draw_signal(below, records, middles)
    below.set(xlabel="images seen, without their labels", xlim=(0, ends[-1]))
    return figure


def finding(domains: Sequence[DomainSummary]) -> str:
    """What the figure shows, in a sentence made from its numbers.

    >>> clean = DomainSummary(0, "clean", 100, 0.93, 0.91, 0.93, 0.0)
    >>> finding([clean, DomainSummary(1, "fog", 100, 0.4, 0.75, 0.8, 1.0)])
    'Right while the images drift: 80 % adapted, 75 % with batch statistics alone, 40 % frozen'
    """
    shares = (f"{100 * shifted_mean(domains, name):.0f} %" for name in ("adapted", "statistics", "frozen"))
    return "Right while the images drift: {} adapted, {} with batch statistics alone, {} frozen".format(*shares)


def _borders(domains: Sequence[DomainSummary]) -> list[int]:
    return [0, *np.cumsum([domain.images for domain in domains]).tolist()]


def _shade_domains(panels: Sequence[Axes], domains: Sequence[DomainSummary]) -> None:
    borders = _borders(domains)
    for domain, left, right in zip(domains, borders, borders[1:], strict=False):
        for axes in panels:
            if domain.corruption != CLEAN:
                axes.axvspan(left, right, color="#F4F1EA", lw=0, zorder=0)
            if left:
                axes.axvline(left, color="#BBBBBB", lw=0.8, zorder=1)


def _draw_accuracy(axes: Axes, records: Sequence[DriftRecord], middles: np.ndarray) -> None:
    for kind, look in LOOKS.items():
        drawn = {name: value for name, value in look.items() if name != "name"}
        axes.plot(middles, [100 * getattr(record, kind) for record in records], **drawn)
    axes.set(ylabel="accuracy of a batch, %", ylim=(0, 104), yticks=range(0, 101, 25))
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _write_means(axes: Axes, domains: Sequence[DomainSummary]) -> None:
    """Names of the domains on top, and under them the mean of each line in its colour: they say which line is whose."""
    borders, place = _borders(domains), axes.get_xaxis_transform()
    heights = dict(zip(LOOKS, (1.20, 1.12, 1.04), strict=True))
    for domain, left, right in zip(domains, borders, borders[1:], strict=False):
        middle = (left + right) / 2
        axes.text(middle, 1.29, spelled(domain.corruption), transform=place, ha="center", fontweight="bold")
        for kind, height in heights.items():
            text = f"{100 * getattr(domain, kind):.1f} %"
            axes.text(middle, height, text, transform=place, ha="center", color=LOOKS[kind]["color"])
    for kind, height in heights.items():
        look = {"color": LOOKS[kind]["color"], "ha": "right", "fontsize": 9}
        axes.text(-0.01, height, LOOKS[kind]["name"], transform=axes.transAxes, **look)


def _draw_signal(axes: Axes, records: Sequence[DriftRecord], middles: np.ndarray) -> None:
    signal = np.array([-math.log10(max(record.p, SMALLEST)) for record in records])
    alarm = np.array([record.alarm for record in records])
    axes.plot(middles, signal, color=INK, lw=1, zorder=2)
    axes.plot(middles[~alarm], signal[~alarm], "o", ms=3.5, color="white", markeredgecolor=INK, zorder=3)
    axes.plot(middles[alarm], signal[alarm], "s", ms=4, color=VERMILION, zorder=3)
    axes.axhline(2, color=VERMILION, lw=1, ls=":", zorder=1)
    axes.set_yscale("symlog", linthresh=2, linscale=0.6)
    axes.set(ylim=(-0.5, 700), ylabel="drift signal:\np of the window")
    axes.set_yticks(list(TICKS), list(TICKS.values()))
    axes.minorticks_off()
