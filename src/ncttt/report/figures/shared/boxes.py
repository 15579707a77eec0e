"""Boxes and arrows: what the diagram of the method is drawn with."""

from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from ncttt.report.figures.shared.style import INK

Place = tuple[float, float]
CORNER = 0.8


@dataclass(frozen=True)
class Look:
    """How a kind of box is painted."""

    fill: str
    edge: str
    line: str = "-"
    weight: float = 1.2


@dataclass(frozen=True)
class Box:
    """A rectangle around `(x, y)`, in units of the diagram."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> Place:
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> Place:
        return self.x + self.width / 2, self.y

    @property
    def top(self) -> Place:
        return self.x, self.y + self.height / 2

    @property
    def bottom(self) -> Place:
        return self.x, self.y - self.height / 2

    def at(self, y: float) -> "Box":
        """The same box in another row."""
        return replace(self, y=y)

    def moved(self, right: float) -> "Box":
        """The same box further to the right."""
        return replace(self, x=self.x + right)


def draw_box(axes: Axes, box: Box, text: str, look: Look) -> None:
    """Draw a box with rounded corners and its text in the middle."""
    corner = box.x - box.width / 2, box.y - box.height / 2
    patch = FancyBboxPatch(corner, box.width, box.height, boxstyle=f"round,pad=0,rounding_size={CORNER}")
    patch.set(facecolor=look.fill, edgecolor=look.edge, linestyle=look.line, linewidth=look.weight)
    axes.add_patch(patch)
    axes.text(box.x, box.y, text, ha="center", va="center", linespacing=1.15)


def draw_arrow(axes: Axes, *places: Place, color: str = INK, line: str = "-") -> None:
    """Draw a line through the places, straight from each to the next, with its head at the last."""
    style = "-|>,head_length=5,head_width=2.6"
    route = Path(list(places), [Path.MOVETO, *[Path.LINETO] * (len(places) - 1)])
    axes.add_patch(
        FancyArrowPatch(path=route, arrowstyle=style, color=color, ls=line, lw=1.4, joinstyle="miter", capstyle="butt")
    )
