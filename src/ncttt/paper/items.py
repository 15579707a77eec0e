"""What the paper shows: seven tables and, but for the drawing of the method, seven figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ncttt.base.errors import InputError, nearest

ALL = "all"


@dataclass(frozen=True)
class Item:
    """A table or a figure: what it shows, the plan that its networks come from, and what tells it from others of it.

    A table has the `severity` of its corruptions, if it has any; a figure the name that `ncttt figures` has for it.
    """

    name: str
    title: str
    plan: str | None = None
    severity: int | None = None
    figure: str | None = None


_ITEMS = (
    Item("table1", "CIFAR-10-C, severity 5", "cifar10", 5),
    Item("table2", "CIFAR-100-C, severity 5", "cifar100", 5),
    Item("table3", "VisDA-C", "visda", None),
    Item("table4", "CIFAR-10-C, severity 4", "cifar10", 4),
    Item("table5", "CIFAR-10-C, severity 3", "cifar10", 3),
    Item("table6", "CIFAR-10-C, severity 2", "cifar10", 2),
    Item("table7", "CIFAR-10-C, severity 1", "cifar10", 1),
    Item("figure2", "posterior of points on a plane", figure="posterior"),
    Item("figure3", "samples of noise and their labels", figure="samples"),
    Item("figure4", "what the discriminator has learned, and its gradient", figure="field"),
    Item("figure5", "expected label against the ratio of the scales", figure="beta"),
    Item("figure6", "accuracy by iterations on CIFAR-10-C", "cifar10", 5, figure="iterations"),
    Item("figure7", "features before and after adaptation", "cifar10", 5, figure="tsne"),
    Item("figure8", "layer against scale of the noise", "visda", None, figure="layers"),
)
ITEMS = {item.name: item for item in _ITEMS}


def chosen_items(names: Sequence[str]) -> list[Item]:
    """The tables and figures of these names, in the paper's order; `all` is every one of them.

    >>> [item.name for item in chosen_items(["figure5", "table1"])]
    ['table1', 'figure5']
    """
    for name in names:
        if name not in (*ITEMS, ALL):
            raise InputError(f"the paper has no {name!r}{nearest(name, (*ITEMS, ALL))}")
    if not names:
        raise InputError(f"name a table or a figure, or {ALL}: {', '.join(ITEMS)}")
    return [item for item in _ITEMS if item.name in names or ALL in names]
