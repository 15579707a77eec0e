"""Where the gradient draws a point (Fig. 4).

The field of -log q (Eq. 9), with the exact posterior as q (Eq. 4), and the way of one point along it. The paper says
that the point stops at the border of the in-distribution region; the right panel shows that it goes on.
"""

import math
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional as F

from ncttt import noise
from ncttt.report.figures.shared.plane import draw_probabilities, grid, source_points
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import GREY, INK, ORANGE, VERMILION, legend_below, name_plane, new_figure, styled

PLACE = 4
SIGMA_IN, SIGMA_OUT = 0.15, 0.6
START, STEPS, LR = (0.1, -1.5), 150, 0.005
EXTENT, SIDE, ARROWS = 1.8, 300, 17


@dataclass(frozen=True)
class Posterior:
    """The probability q that a point is in-distribution, given source points `(R, 2)` and two scales."""

    references: Tensor
    sigma_in: float
    sigma_out: float

    def loss(self, points: Tensor) -> Tensor:
        """`-log q` of points `(N, 2)`, as `(N,)`."""
        return F.softplus(-noise.kde_posterior_logit(points, self.references, self.sigma_in, self.sigma_out))

    def probability(self, points: Tensor) -> Tensor:
        """q of points `(N, 2)`, as `(N,)`."""
        return torch.exp(-self.loss(points))

    def downhill(self, points: Tensor) -> Tensor:
        """The negative gradient of `-log q` at points `(N, 2)`, by autograd."""
        with torch.enable_grad():
            moved = points.detach().clone().requires_grad_()
            (gradient,) = torch.autograd.grad(self.loss(moved).sum(), moved)
        return -gradient


def make(_: Request) -> Figure:
    """The figure, which needs nothing."""
    return draw_field()


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
    direction = F.normalize(posterior.downhill(places), dim=1)
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


def descend(posterior: Posterior, start: Tensor, steps: int, lr: float) -> Tensor:
    """The positions `(steps + 1, 2)` of a point `(2,)` under gradient steps on `-log q`."""
    positions = [start]
    for _ in range(steps):
        positions.append(positions[-1] + lr * posterior.downhill(positions[-1][None])[0])
    return torch.stack(positions)
