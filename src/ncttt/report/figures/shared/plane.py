"""The plane that two-dimensional figures look at: source points, a grid, and a map of probabilities."""

import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from torch import Tensor

from ncttt.report.figures.shared.style import INK, PROBABILITY


def source_points(count: int = 18, scale: float = 1.0, seed: int = 3) -> Tensor:
    """Source points `(count, 2)` along a crescent of radius `scale`, float64.

    >>> source_points(5).shape
    torch.Size([5, 2])
    """
    generator = torch.Generator().manual_seed(seed)
    angle = torch.linspace(-0.1, 1.1, count, dtype=torch.float64) * torch.pi
    crescent = torch.stack([angle.cos(), angle.sin() - 0.4], dim=1)
    return scale * (crescent + 0.1 * torch.randn(count, 2, generator=generator, dtype=torch.float64))


def cell_centres(extent: float, side: int) -> Tensor:
    """The coordinates `(side,)` of the centres of equal cells between `-extent` and `extent`.

    >>> cell_centres(1.0, 4)
    tensor([-0.7500, -0.2500,  0.2500,  0.7500], dtype=torch.float64)
    """
    return ((torch.arange(side, dtype=torch.float64) + 0.5) * 2 / side - 1) * extent


def grid(extent: float, side: int) -> Tensor:
    """Positions `(side * side, 2)` of the cells of a square, row by row from the bottom."""
    line = cell_centres(extent, side)
    second, first = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([first.flatten(), second.flatten()], dim=1)


def draw_probabilities(axes: Axes, values: Tensor, extent: float) -> AxesImage:
    """Draw probabilities at the positions of `grid`, and the border where they are one half."""
    side = round(len(values) ** 0.5)
    square = values.view(side, side).numpy()
    line = cell_centres(extent, side).numpy()
    axes.contour(line, line, square, [0.5], colors=INK, linewidths=0.9)
    limits = (-extent, extent, -extent, extent)
    return axes.imshow(square, origin="lower", extent=limits, cmap=PROBABILITY, vmin=0, vmax=1, interpolation="nearest")
