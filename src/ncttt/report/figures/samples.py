"""Both noises and their soft labels (Fig. 3).

Samples of the two noises, and the soft labels that tell them apart (Eq. 5 to 7).
"""

import torch
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Rectangle
from torch import Tensor

from ncttt import noise
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import (
    GREY,
    INK,
    INSIDE,
    OUTSIDE,
    PROBABILITY,
    legend_below,
    name_plane,
    new_figure,
    styled,
)

PLACE = 3
SIGMA_IN, SIGMA_OUT = 0.05, 1.0
WIDE, NEAR = 3.4, 0.45
MARKER_SIZE = 11


def make(_: Request) -> Figure:
    """The figure, which needs nothing."""
    return draw_samples()


@styled
def draw_samples(count: int = 700, seed: int = 0) -> Figure:
    """Two-dimensional noise vectors, `count` of each scale: all of them, those near zero, and their soft labels."""
    generator = torch.Generator().manual_seed(seed)
    inner, outer = (_sample(count, sigma, generator) for sigma in (SIGMA_IN, SIGMA_OUT))
    figure = new_figure(height=3.05)
    whole, near, labelled = figure.subplots(1, 3)
    _draw_origins(whole, inner, outer, on_top="in")
    _draw_origins(near, inner, outer, on_top="out")
    whole.add_patch(Rectangle((-NEAR, -NEAR), 2 * NEAR, 2 * NEAR, fill=False, color=INK, lw=1.2, zorder=4))
    whole.set(title="both noises", xlim=(-WIDE, WIDE), ylim=(-WIDE, WIDE))
    near.set_title("the square around zero")
    labelled.set_title("soft labels in the square")
    marks = _draw_labels(labelled, torch.cat([outer, inner]))
    for axes in (near, labelled):
        _draw_border(axes)
        axes.set(xlim=(-NEAR, NEAR), ylim=(-NEAR, NEAR), xticks=[-0.4, 0, 0.4], yticks=[-0.4, 0, 0.4])
    for axes in (whole, near, labelled):
        name_plane(axes, r"$\varepsilon_1$", r"$\varepsilon_2$")
    figure.colorbar(marks, ax=labelled, label="in-distribution probability", location="right", aspect=18, shrink=0.72)
    handles, names = near.get_legend_handles_labels()
    border = Line2D([], [], color="none", marker="o", markeredgecolor=INK, markeredgewidth=1.2, markersize=6)
    legend_below(figure, [*handles, border], [*names, "soft label one half"], markerscale=1.5)
    return figure


def _sample(count: int, sigma: float, generator: torch.Generator) -> Tensor:
    return noise.Gaussian().sample(torch.empty(count, 2, dtype=torch.float64), sigma, generator)


def _draw_origins(axes: Axes, inner: Tensor, outer: Tensor, on_top: str) -> None:
    """Which noise a vector came from, by colour and by marker."""
    crosses = {"marker": "x", "linewidths": 1.0, "color": OUTSIDE, "zorder": 3 if on_top == "out" else 2}
    dots = {"edgecolors": "white", "linewidths": 0.3, "color": INSIDE, "zorder": 2.5}
    for name, vectors, sigma, marks in (("out", outer, SIGMA_OUT, crosses), ("in", inner, SIGMA_IN, dots)):
        label = rf"{name}: $\sigma_\mathrm{{{name}}} = {sigma:g}$"
        axes.scatter(*vectors.T.numpy(), s=MARKER_SIZE, label=label, **marks)


def _draw_labels(axes: Axes, vectors: Tensor) -> PathCollection:
    labels = noise.soft_label(vectors, SIGMA_IN, SIGMA_OUT).numpy()
    edge = {"edgecolors": GREY, "linewidths": 0.5}
    return axes.scatter(*vectors.T.numpy(), c=labels, s=MARKER_SIZE + 3, cmap=PROBABILITY, vmin=0, vmax=1, **edge)


def _draw_border(axes: Axes) -> None:
    """The circle of Eq. 7, on which the soft label is one half."""
    radius = noise.in_distribution_radius(SIGMA_IN, SIGMA_OUT, dim=2)
    axes.add_patch(Circle((0, 0), radius, fill=False, color=INK, lw=1.2, zorder=4))
