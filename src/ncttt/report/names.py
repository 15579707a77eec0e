"""The order and the spelling of names in reports."""

from __future__ import annotations

import re
from typing import Final

from ncttt.data.corruptions import CLEAN, CORRUPTIONS, EXTRA
from ncttt.methods.registry import METHODS, place_of, title_of
from ncttt.report.paper.names import LAMES

_LINES: Final = (CLEAN, *CORRUPTIONS, *EXTRA)


def corruption_order(name: str) -> tuple[int, str]:
    """A key to sort corruptions by: clean, the fifteen of the benchmark, the extra four, then others by name.

    >>> sorted(["saturate", "fog", "shot_noise", "clean"], key=corruption_order)
    ['clean', 'shot_noise', 'fog', 'saturate']
    """
    return (_LINES.index(name), "") if name in _LINES else (len(_LINES), name)


def method_order(name: str) -> float:
    """A key to sort methods by: their places in tables, then what is not installed here."""
    # A row may name a method by its address, which is code that a report of foreign rows must not import.
    return place_of(name) if name in list(METHODS) else float("inf")


def spelled(corruption: str) -> str:
    """A corruption as a table shows it.

    >>> spelled("jpeg_compression"), spelled("shot_noise"), spelled("fog+snow")
    ('JPEG compression', 'Shot noise', '2 corruptions in one stream')
    """
    if "+" in corruption:
        return f"{corruption.count('+') + 1} corruptions in one stream"
    words = corruption.replace("_", " ")
    return "JPEG" + words[4:] if words.startswith("jpeg") else words[:1].upper() + words[1:]


def spelled_method(label: str) -> str:
    """A method's label as figures show it; what follows the name stays as it is.

    >>> spelled_method("nc_ttt"), spelled_method("lame knn"), spelled_method("ttt_flow, a folder")
    ('NC-TTT', 'LAME-K', 'TTTFlow, a folder')
    >>> spelled_method("nc_ttt that stops"), spelled_method("mine")
    ('NC-TTT that stops', 'mine')
    """
    for name in sorted((*LAMES, *METHODS), key=len, reverse=True):
        if re.match(rf"{re.escape(name)}\b", label):
            return (LAMES.get(name) or title_of(name)) + label[len(name) :]
    return label
