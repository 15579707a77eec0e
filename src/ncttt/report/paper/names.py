"""What the paper calls our methods and data sets, and we the paper's."""

from __future__ import annotations

import re
from typing import Final

from ncttt.base.errors import InputError, nearest
from ncttt.methods.registry import listings

DATA: Final = {"cifar10": "cifar10-c", "cifar100": "cifar100-c"}  # what is corrupted here is published corrupted
LAMES: Final = {"lame linear": "LAME-L", "lame knn": "LAME-K", "lame rbf": "LAME-R"}  # in the table of VisDA-C
SOURCE: Final = "ResNet50"  # the paper calls the source by its network
NOT_THERE: Final = "ttt_flow"

# Ours, with the paper's names in the order of preference: its CIFAR tables have one LAME.
NAMES: Final[dict[str, tuple[str, ...]]] = {
    **{name: (method.title,) for name, method in listings().items() if name != NOT_THERE},
    "source": (SOURCE,),
    **{name: (theirs, "LAME") for name, theirs in LAMES.items()},
}


def paper_names(label: str) -> tuple[str, ...]:
    """What the paper calls the method of a label, likeliest first; nothing if it does not have it.

    >>> paper_names("nc_ttt"), paper_names("NC-TTT"), paper_names("lame knn"), paper_names("ttt_flow")
    (('NC-TTT',), ('NC-TTT',), ('LAME-K', 'LAME'), ())
    """
    return _BY_SIMPLE_NAME.get(_simple(label), ())


def our_name(paper: str) -> str:
    """What we call a method of the paper.

    >>> our_name("TTT++"), our_name("LAME-K")
    ('ttt_plus', 'lame knn')
    """
    for ours, theirs in NAMES.items():
        if theirs[0] == paper:
            return ours
    raise InputError(f"the paper has no method {paper!r}{nearest(paper, [names[0] for names in NAMES.values()])}")


def paper_data(data: str) -> str:
    """What the paper calls the data of a row."""
    return DATA.get(data, data)


def _simple(name: str) -> str:
    """Without what people write in one way or another; the pluses of TTT++ stay."""
    return re.sub(r"[\s_-]+", "", name).casefold()


_BY_SIMPLE_NAME = {_simple(ours): theirs for ours, theirs in NAMES.items()} | {
    _simple(theirs[0]): theirs for theirs in NAMES.values()
}
