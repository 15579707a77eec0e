"""`ncttt figures`: the figures of the paper and of a benchmark, as SVG and PNG."""

import sys
from typing import Any

from ncttt.report.figures.gallery import Drawing, draw_figures, listing
from ncttt.report.figures.shared.request import Request

EXAMPLE = "ncttt figures method posterior --out runs/figures"

EXAMPLE = "ncttt figures method posterior --out runs/figures"
GROUP = "show"


def figures(names: list[str], *, out: str = "runs/figures", **request: Any) -> None:
    """Draw figures, each as SVG and PNG, and print where they are; `ncttt figures list` says which there are.

    Args:
        names: Names of figures, or all, which leaves out those whose input is not given; LISTING.
        out: Folder to write to.
    """
    if names == ["list"]:
        print(listing())
    else:
        draw_figures(names, out, Request(**request), tell=_tell)


def _tell(drawing: Drawing) -> None:
    if drawing.left_out:
        print(f"ncttt: left out {drawing.name}: {drawing.left_out}", file=sys.stderr)
    else:
        print(*drawing.files, sep="\n")


figures.__doc__ = (figures.__doc__ or "").replace("LISTING", listing().replace("\n", "; "))
