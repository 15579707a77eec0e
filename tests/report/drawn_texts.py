"""What a reader of a figure sees: the texts that were really drawn, where, and how large."""

import re
from itertools import combinations
from unittest import mock

from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SUBSCRIPT = 0.7  # matplotlib's size of a subscript, relative to its text


def drawn_texts(figure: Figure) -> list[Text]:
    """Every text that drawing reaches: tick labels outside the axes, for one, exist but are never drawn."""
    drawn: dict[int, Text] = {}
    original = Text.draw

    def record(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn[id(text)] = text
        return original(text, renderer)

    with mock.patch.object(Text, "draw", record):
        figure.canvas.draw()
    return list(drawn.values())


def smallest_letter(text: Text) -> float:
    """The size in points of the smallest letter, subscripts included."""
    return text.get_fontsize() * (SUBSCRIPT if re.search(r"\$[^$]*[_^]", text.get_text()) else 1)


def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    return [(text.get_text(), text.get_window_extent()) for text in drawn_texts(figure)]


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    return [(first, second) for (first, a), (second, b) in combinations(boxes(figure), 2) if a.overlaps(b)]


def beyond_the_edge(figure: Figure) -> list[str]:
    """Texts that the edge of the figure cuts."""
    page = figure.bbox
    return [text for text, box in boxes(figure) if not (page.contains(*box.min) and page.contains(*box.max))]


def crossed(figure: Figure) -> list[str]:
    """Texts that a curve, a border or an arrow runs through."""
    return [text for text, box in boxes(figure) for axes in figure.axes if _runs_through(axes, box)]


def _runs_through(axes, box: Bbox) -> bool:
    part = Bbox.intersection(box, axes.bbox)
    return part is not None and any(line.intersects_bbox(part, filled=False) for line in _lines(axes))


def _lines(axes) -> list[Path]:
    """The lines of the data, in pixels; their axes show what lies inside them only."""
    in_data = [path for artist in axes.collections if isinstance(artist, ContourSet) for path in artist.get_paths()]
    in_data += [_open(patch.get_path()) for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    in_pixels = [axes.transData.transform_path(path) for path in in_data if len(path.vertices)]
    return in_pixels + [line.get_transform().transform_path(line.get_path()) for line in axes.lines]


def _open(path: Path) -> Path:
    """The path without the vertices that only close a shape: they are nowhere."""
    real = path.codes != Path.CLOSEPOLY
    return Path(path.vertices[real], path.codes[real])
