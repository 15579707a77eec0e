"""One style for every figure: sizes, fonts, colours that the colour-blind can tell apart, and the files."""

from collections.abc import Callable, Sequence
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import Any, ParamSpec

from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ncttt.base.files import replace_files
from ncttt.report import palette

Settings = ParamSpec("Settings")

# Line styles and markers differ, too, so that no figure needs its colours.
BLUE, ORANGE, VERMILION = palette.BLUE, palette.ORANGE, palette.VERMILION
SKY, GREEN, YELLOW, PURPLE = palette.SKY, palette.GREEN, palette.YELLOW, palette.PURPLE
INK, GREY, PALE = "#222222", "#767676", "#EDEDED"
# What belongs to the source, or is in-distribution, is blue; what is not, is vermilion.
INSIDE, OUTSIDE = BLUE, VERMILION
# Darker means more probable, all the way: it reads the same in grey.
PROBABILITY = LinearSegmentedColormap.from_list("probability", ["#FFFBF2", "#C9DFEE", "#62A9D3", BLUE, "#06375A"])
# A loss is vermilion, a gain blue; the middle is nothing.
GAIN = LinearSegmentedColormap.from_list("gain", [VERMILION, "#F6C9A8", "#FFFBF2", "#A9CCE3", BLUE])

WIDTH = 8.0  # inches: 800 pixels at 100 dots an inch, where 10 points are 14 pixels
FONT_SIZE = 10.0  # the subscripts of such a text are 7 points
TICK_SIZE = 9.0

RULES: dict[str, Any] = {
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "font.family": "DejaVu Sans",  # ships with matplotlib, so every machine draws the same letters
    "mathtext.fontset": "dejavusans",
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "legend.fontsize": FONT_SIZE,
    "figure.titlesize": FONT_SIZE,
    "figure.labelsize": FONT_SIZE,
    "xtick.labelsize": TICK_SIZE,
    "ytick.labelsize": TICK_SIZE,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "ncttt",  # else the ids in an SVG differ from one run to the next
}


def styled(draw: Callable[Settings, Figure]) -> Callable[Settings, Figure]:
    """Let a function draw in this style, whatever the user's own settings; they are as before afterwards."""

    @wraps(draw)
    def in_style(*positional: Settings.args, **keywords: Settings.kwargs) -> Figure:
        with style.context(RULES, after_reset=True):
            figure = draw(*positional, **keywords)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # it has done its work; once more would move things a little
            return figure

    return in_style


def new_figure(height: float) -> Figure:
    """An empty figure of the common width and this height in inches, apart from the state of pyplot."""
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    return figure


def name_plane(axes: Axes, first: str = "$z_1$", second: str = "$z_2$") -> None:
    """Label two coordinates of one space, which need one scale."""
    axes.set(xlabel=first, ylabel=second, aspect="equal")


def legend_below(
    figure: Figure,
    handles: Sequence[Artist],
    names: Sequence[str],
    markerscale: float = 1.0,
    columns: int | None = None,
    title: str | None = None,
) -> None:
    """Explain the signs below all panels, where they cover nothing: in one row, or in so many columns."""
    options: dict[str, Any] = {"title": title, "title_fontsize": TICK_SIZE, "markerscale": markerscale}
    figure.legend(handles, names, loc="outside lower center", ncols=columns or len(names), **options)


def save(figure: Figure, folder: str | Path, name: str) -> tuple[Path, Path]:
    """Write `name.svg` and `name.png` into the folder, the same bytes for the same figure; returns both paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    contents = {
        svg: _encoded(figure, "svg", {"Date": None, "Creator": None}),
        png: _encoded(figure, "png", {"Software": None}),
    }
    replace_files(contents)
    return svg, png


def _encoded(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    """The figure in a format; the metadata leave out what changes with the day or the release of matplotlib."""
    buffer = BytesIO()
    with style.context(RULES, after_reset=True):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()
