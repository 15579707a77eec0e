"""Every figure by name: what it shows and what it is drawn from. Names only, so that a list of them needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from ncttt.base.errors import InputError, nearest

ALL: Final = "all"
Needs = Literal["nothing", "rows", "trials", "images", "model"]


class Exhibit(NamedTuple):
    """What a figure shows, and what it needs; images and a model are there for digits without being asked for."""

    shows: str
    needs: Needs = "nothing"


GALLERY: Final = {
    "method": Exhibit("the method as a diagram (Fig. 1)"),
    "posterior": Exhibit("in-distribution probability by scales (Fig. 2)"),
    "samples": Exhibit("both noises and their soft labels (Fig. 3)"),
    "field": Exhibit("where the gradient draws a point (Fig. 4)"),
    "beta": Exhibit("expected label of an out-view (Fig. 5)"),
    "iterations": Exhibit("accuracy by iterations (Fig. 6)", "rows"),
    "tsne": Exhibit("features before and after (Fig. 7)", "model"),
    "layers": Exhibit("layer against scale of noise (Fig. 8)", "trials"),
    "attribution": Exhibit("what statistics and steps gave", "rows"),
    "shift": Exhibit("shift score against error", "rows"),
    "corruptions": Exhibit("one image under each of them", "images"),
    "reliability": Exhibit("confidence against accuracy", "model"),
}
HOW: Final = {
    "rows": "--rows FILE, the store of `ncttt bench --config configs/bench/digits.yaml` or a CSV of it",
    "trials": "--trials FILE, from `ncttt tune --config configs/tune/layer-sigma.yaml --json > FILE`",
}


def listing() -> str:
    """A line for each figure: its name, what it shows, what it needs.

    >>> print(listing().splitlines()[-1])
    reliability: confidence against accuracy [model]
    """
    needs = {name: "" if exhibit.needs == "nothing" else f" [{exhibit.needs}]" for name, exhibit in GALLERY.items()}
    return "\n".join(f"{name}: {exhibit.shows}{needs[name]}" for name, exhibit in GALLERY.items())


def chosen(names: Sequence[str]) -> list[str]:
    """The names that were asked for, each once; `all` is every one of them.

    >>> chosen(["beta", "field", "beta"])
    ['beta', 'field']
    """
    for name in names:
        if name not in (*GALLERY, ALL):
            raise InputError(f"no figure {name!r}{nearest(name, [*GALLERY, ALL])}")
    return list(GALLERY) if ALL in names else list(dict.fromkeys(names))
