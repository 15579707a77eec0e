"""Where -log q draws a point: its gradient field, and one way along it (Eq. 9; Figure 4 of the paper).

The paper says that the point stops at the border of the in-distribution region; the right panel shows that it goes on.
"""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ncttt.report.figures.descent import Posterior, descend
from ncttt.report.figures.plane import draw_probabilities, grid, source_points
from ncttt.report.figures.style import GREY, INK, ORANGE, VERMILION, legend_below, name_plane, new_figure, styled

SIGMA_IN, SIGMA_OUT = 0.15, 0.6
START, STEPS, LR = (0.1, -1.5), 150, 0.005
EXTENT, SIDE, ARROWS = 1.8, 300, 17


@styled
def draw_field() -> Figure:
    """Heat map of q with the direction that lowers -log q, the way of an outlier, and -log q along that way."""
    posterior = Posterior(source_points(), SIGMA_IN, SIGMA_OUT)
    path = descend(posterior, torch.tensor(START, dtype=torch.float64), STEPS, LR)
    losses = posterior.loss(path)
    border = int((posterior.probability(path) >= 0.5).nonzero()[0])
    figure = new_figure(height=4.3)
    plane, curve = figure.subplots(1, 2, width_ratios=[1.35, 1])
    _draw_plane(plane, posterior, path)
    _draw_losses(curve, losses)
    _mark(plane, path[:, 0], path[:, 1], border)
    _mark(curve, torch.arange(len(path)), losses, border)
    legend_below(figure, *plane.get_legend_handles_labels())
    return figure


def _draw_plane(axes: Axes, posterior: Posterior, path: Tensor) -> None:
    image = draw_probabilities(axes, posterior.probability(grid(EXTENT, SIDE)), EXTENT)
    places = grid(EXTENT, ARROWS)
    direction = torch.nn.functional.normalize(posterior.downhill(places), dim=1)
    axes.quiver(*places.T.numpy(), *direction.T.numpy(), color=GREY, pivot="mid", scale=28, width=0.0035)
    points = posterior.references.T.numpy()
    axes.scatter(*points, s=16, color=ORANGE, edgecolors=INK, linewidths=0.5, label="source point")
    axes.plot(*path.T.numpy(), color=VERMILION, lw=2.2, label="way of an outlier")
    name_plane(axes)
    axes.set(title=r"$q$ and the direction of $\nabla \log q$", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    axes.figure.colorbar(image, ax=axes, label="in-distribution probability $q$", shrink=0.85)


def _draw_losses(axes: Axes, losses: Tensor) -> None:
    axes.axhline(math.log(2), color=INK, lw=0.9)
    axes.text(len(losses) - 1, math.log(2) * 1.05, "border, $q$ = 1/2", ha="right", va="bottom")
    axes.plot(losses.numpy(), color=VERMILION)
    axes.set(title="the loss along the way", xlabel="gradient steps", ylabel=r"$-\log q$", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.06)
    axes.grid()


def _mark(axes: Axes, first: Tensor, second: Tensor, border: int) -> None:
    """Start, first step inside the border, and end: by the same markers in both panels."""
    marks = {"start": (0, "o"), "border crossed": (border, "D"), "end": (-1, "s")}
    for name, (step, marker) in marks.items():
        place = first[step].item(), second[step].item()
        axes.plot(*place, marker, color="white", markeredgecolor=INK, markersize=7, label=name, ls="", zorder=5)
