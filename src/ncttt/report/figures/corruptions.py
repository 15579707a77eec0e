"""One image under each of them.

What the corruptions look like, from the mildest severity to the worst.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncttt.data import load
from ncttt.data.corruptions import CLEAN, CORRUPTIONS
from ncttt.data.corruptions.contact_sheet import at_each_severity
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import new_figure, styled
from ncttt.report.names import spelled

PLACE = 11
NEEDS = "images"
GAP = 1 / 16  # of a tile, between tiles


def make(request: Request) -> Figure:
    """The first test image of the data."""
    image = load(request.data, "test", root=request.root).images[0]
    each = {name: at_each_severity(image, name, constants=request.constants) for name in CORRUPTIONS}
    return draw_corruptions(image, each)


@styled
def draw_corruptions(clean: np.ndarray, corrupted: Mapping[str, np.ndarray]) -> Figure:
    """Two blocks of lines, a line for each corruption; the clean image ends them.

    `clean` is uint8 `(H, W, 3)`, `corrupted` has by name uint8 `(severities, H, W, 3)`, as
    `ncttt.data.corruptions.contact_sheet.at_each_severity` gives it.
    """
    lines = {**corrupted, CLEAN: clean[None]}
    half = math.ceil(len(lines) / 2)
    names = list(lines)
    severities = max(len(tiles) for tiles in corrupted.values())
    figure = new_figure(height=0.5 * half + 0.6)
    for axes, shown in zip(figure.subplots(1, 2), (names[:half], names[half:]), strict=True):
        _draw(axes, [lines[name] for name in shown], severities)
        axes.set_yticks(_centres(len(shown), clean.shape[0]), labels=[spelled(name) for name in shown])
        axes.set_xticks(_centres(severities, clean.shape[1]), labels=range(1, severities + 1))
    return figure


def sheet(lines: Sequence[np.ndarray], columns: int) -> np.ndarray:
    """Tiles `(n, H, W, 3)` of each line in one white picture.

    >>> sheet([np.zeros((2, 32, 32, 3), np.uint8)], columns=3).shape
    (32, 100, 3)
    """
    height, width = lines[0].shape[1:3]
    down, across = _pitch(height), _pitch(width)
    picture = np.full((len(lines) * down - (down - height), columns * across - (across - width), 3), 255, np.uint8)
    for line, tiles in enumerate(lines):
        for column, tile in enumerate(tiles):
            top, left = line * down, column * across
            picture[top : top + height, left : left + width] = tile
    return picture


def _draw(axes: Axes, lines: Sequence[np.ndarray], columns: int) -> None:
    axes.imshow(sheet(lines, columns), interpolation="nearest")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("severity")


def _pitch(size: int) -> int:
    """From the start of a tile to that of the next."""
    return size + max(1, round(size * GAP))


def _centres(count: int, size: int) -> list[float]:
    return [number * _pitch(size) + (size - 1) / 2 for number in range(count)]
