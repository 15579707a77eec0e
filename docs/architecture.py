"""Draw the packages of ncttt and who imports whom, from the import contract and the code itself.

    python docs/architecture.py           # writes docs/images/architecture.svg and .png
    python docs/architecture.py --check   # fails if the committed picture is not that of the code

The layers come from the import-linter contract in pyproject.toml, the imports from grimp, on which import-linter is
built. Both stand as text in the SVG, so that a picture can be compared with the code without drawing it.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import grimp
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ncttt.report.figures.shared.boxes import Box, Look, draw_box
from ncttt.report.figures.shared.style import BLUE, INK, PALE, RULES, WIDTH, new_figure, styled

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/architecture.svg"
ROOM = Look(fill="#CFE5F3", edge=BLUE, weight=1.4)
STEP_X, STEP_Y, HEIGHT = 5.8, 4.4, 3.2  # of the diagonal, and the height of a box, in units of the diagram
MARGIN = 5.8


class Architecture(NamedTuple):
    """Layers from top to bottom, with the packages of each, and pairs of a package and one that it imports."""

    layers: list[list[str]]
    imports: list[list[str]]

    @property
    def packages(self) -> list[str]:
        """All packages from top to bottom."""
        return [name for layer in self.layers for name in layer]


def read_architecture() -> Architecture:
    """The layers of the contract, and the imports between them that the code has."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    root = settings["root_package"]
    (contract,) = (found for found in settings["contracts"] if found["type"] == "layers")
    layers = [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
    graph = grimp.build_graph(root, exclude_type_checking_imports=settings["exclude_type_checking_imports"])
    names = [name for layer in layers for name in layer]
    for name in names:
        graph.squash_module(f"{root}.{name}")
    pairs = [
        [above, below]
        for above in names
        for below in names
        if above != below and graph.direct_import_exists(importer=f"{root}.{above}", imported=f"{root}.{below}")
    ]
    return Architecture(layers, pairs)


def drawn() -> Architecture:
    """What the committed picture shows."""
    found = re.search(r"<dc:description>(.*?)</dc:description>", PICTURE.read_text(), re.DOTALL)
    return Architecture(**json.loads(found[1].replace("&quot;", '"'))) if found else Architecture([], [])


@styled
def draw(architecture: Architecture) -> Figure:
    """Packages along the diagonal; a dot to the right of one and above another: the first imports the second."""
    names = architecture.packages
    places = {name: (MARGIN + STEP_X * i, -STEP_Y * i) for i, name in enumerate(names)}
    right, bottom = MARGIN + STEP_X * (len(names) - 1) + MARGIN, -STEP_Y * (len(names) - 1) - HEIGHT
    figure = new_figure(height=(HEIGHT - bottom) / right * WIDTH)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, right), ylim=(bottom, HEIGHT))
    axes.axis("off")
    for layer in architecture.layers:
        (left, top), (_, low) = places[layer[0]], places[layer[-1]]
        if len(layer) > 1:
            width, height = STEP_X * (len(layer) - 1) + 11.2, top - low + HEIGHT + 1
            axes.add_patch(Rectangle((left - 5.6, low - HEIGHT / 2 - 0.5), width, height, color=PALE, zorder=-2))
            axes.text(left - 6.4, (top + low) / 2, "one layer:\nno imports\namong them", ha="right", va="center")
    for above, below in architecture.imports:
        (_, y), (x, _) = places[above], places[below]
        axes.plot(x, y, "o", color=INK, markersize=5)
    for name in names:
        x, y = places[name]
        imported = [places[below][0] for above, below in architecture.imports if above == name]
        importers = [places[above][1] for above, below in architecture.imports if below == name]
        axes.plot([x, max(imported, default=x)], [y, y], color="#C4C4C4", lw=1, zorder=-1)
        axes.plot([x, x], [y, max(importers, default=y)], color="#C4C4C4", lw=1, zorder=-1)
        draw_box(axes, Box(x, y, 10.4, HEIGHT), name, ROOM)
        axes.texts[-1].set_fontsize(8.5)  # so that the longest name fits
    axes.text(
        1,
        bottom + 3,
        "A dot to the right of a package and above another:\nthe first imports the second. All dots lie above\n"
        "the diagonal: imports point downwards only.",
        va="bottom",
    )
    return figure


def write(architecture: Architecture) -> None:
    """The picture as SVG, with what it shows as text, and as PNG."""
    about: dict[str, Any] = {"Date": None, "Creator": None, "Description": json.dumps(architecture._asdict())}
    figure = draw(architecture)
    with style.context(RULES, after_reset=True):
        figure.savefig(PICTURE, metadata=about)
        figure.savefig(PICTURE.with_suffix(".png"), metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed picture and write nothing")
    found = read_architecture()
    if not parser.parse_args().check:
        write(found)
    elif found != drawn():
        sys.exit(f"{PICTURE.relative_to(ROOT)} does not show the code as it is; `make architecture` draws it again")


if __name__ == "__main__":
    main()
