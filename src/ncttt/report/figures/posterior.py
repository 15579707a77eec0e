"""In-distribution probability by scales (Fig. 2).

The posterior of two kernel density estimates (Eq. 4) over pairs of scales.
"""

import itertools

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from ncttt import noise
from ncttt.report.figures.shared.plane import draw_probabilities, grid, source_points
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import INK, ORANGE, legend_below, new_figure, styled

PLACE = 2
SIGMAS_IN, SIGMAS_OUT = (0.01, 0.05), (1, 5, 10, 50)
EXTENT, SIDE = 0.8, 320


def make(_: Request) -> Figure:
    """The figure, which needs nothing."""
    return draw_posterior()


@styled
def draw_posterior() -> Figure:
    """Maps of the in-distribution probability around source points: rows differ in sigma_in, columns in sigma_out."""
    figure = new_figure(height=4.3)
    panels = figure.subplots(len(SIGMAS_IN), len(SIGMAS_OUT), sharex=True, sharey=True)
    pairs = itertools.product(SIGMAS_IN, SIGMAS_OUT)
    images = [_draw_map(axes, *pair) for axes, pair in zip(panels.flat, pairs, strict=True)]
    for row, sigma_in in zip(panels, SIGMAS_IN, strict=True):
        row[0].set_ylabel(rf"$\sigma_\mathrm{{in}} = {sigma_in}$" + "\n$z_2$")
    for axes, sigma_out in zip(panels[0], SIGMAS_OUT, strict=True):
        axes.set_title(rf"$\sigma_\mathrm{{out}} = {sigma_out}$", loc="center")
    for axes in panels[-1]:
        axes.set_xlabel("$z_1$")
    figure.colorbar(images[0], ax=panels, label="in-distribution probability", shrink=0.9, aspect=30)
    handles = [
        Line2D([], [], color=ORANGE, marker="o", markeredgecolor=INK, markeredgewidth=0.4, ls="", ms=5),
        Line2D([], [], color=INK, lw=0.9),
    ]
    legend_below(figure, handles, ["source point", "border of the region: probability one half"])
    return figure


def _draw_map(axes: Axes, sigma_in: float, sigma_out: float) -> AxesImage:
    points = source_points(scale=0.45)
    values = noise.kde_posterior(grid(EXTENT, SIDE), points, sigma_in, sigma_out)
    image = draw_probabilities(axes, values, EXTENT)
    axes.scatter(*points.T.numpy(), s=5, color=ORANGE, edgecolors=INK, linewidths=0.3, zorder=3)
    area = (values >= 0.5).double().mean().item() * (2 * EXTENT) ** 2
    axes.text(0, 0.64, f"area {area:.2f}", ha="center", size=9)
    axes.set(aspect="equal", xticks=[-0.5, 0, 0.5], yticks=[-0.5, 0, 0.5])
    return image
