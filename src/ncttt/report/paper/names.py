"""What the paper calls our methods and data sets, and we the paper's."""

from __future__ import annotations

import re
from typing import Final

from ncttt.base.errors import InputError, nearest

# Ours, with the paper's names in the order of preference: its CIFAR tables have one LAME, that of VisDA-C has three.
NAMES: Final[dict[str, tuple[str, ...]]] = {
    "source": ("ResNet50",),
    "lame": ("LAME",),
    "lame linear": ("LAME-L", "LAME"),
    "lame knn": ("LAME-K", "LAME"),
    "lame rbf": ("LAME-R", "LAME"),
    "ptbn": ("PTBN",),
    "tent": ("TENT",),
    "ttt": ("TTT",),
    "ttt_plus": ("TTT++",),
    "clust3": ("ClusT3",),
    "nc_ttt": ("NC-TTT",),
}
UNKNOWN_TO_THE_PAPER: Final = {"source": "Source", "ttt_flow": "TTTFlow"}  # it calls the source by its network
DATA: Final = {"cifar10": "cifar10-c", "cifar100": "cifar100-c"}  # what is corrupted here is published corrupted


def paper_names(label: str) -> tuple[str, ...]:
    """What the paper calls the method of a label, likeliest first; nothing if it does not have it.

    >>> paper_names("nc_ttt"), paper_names("NC-TTT"), paper_names("lame knn"), paper_names("ttt_flow")
    (('NC-TTT',), ('NC-TTT',), ('LAME-K', 'LAME'), ())
    """
    return _BY_SIMPLE_NAME.get(_simple(label), ())


def spelled_method(label: str) -> str:
    """A method's label as figures show it; what follows the name stays as it is.

    >>> spelled_method("nc_ttt"), spelled_method("lame knn"), spelled_method("ttt_flow, a folder")
    ('NC-TTT', 'LAME-K', 'TTTFlow, a folder')
    >>> spelled_method("nc_ttt that stops"), spelled_method("mine")
    ('NC-TTT that stops', 'mine')
    """
    known = {ours: theirs[0] for ours, theirs in NAMES.items()} | UNKNOWN_TO_THE_PAPER
    for ours in sorted(known, key=len, reverse=True):
        if re.match(rf"{ours}\b", label):
            return known[ours] + label[len(ours) :]
    return label


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
