"""The numbers of the paper's tables, and what it calls our methods and data sets.

`tables.csv` holds them; its columns `corrected`, `bold`, `bold_error` and `note` are ours.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal

from ncttt.base.errors import InputError, nearest
from ncttt.data.corruptions import CLEAN
from ncttt.methods.registry import listings
from ncttt.report.names import LAMES

AVERAGE = "average"
BoldError = Literal["", "wrong", "missing"]
DATA: Final = {"cifar10": "cifar10-c", "cifar100": "cifar100-c"}  # what is corrupted here is published corrupted
SOURCE: Final = "ResNet50"  # the paper calls the source by its network
NOT_THERE: Final = ("ttt_flow", "ttt_mae")
# Ours, with the paper's names in the order of preference: its CIFAR tables have one LAME.
NAMES: Final[dict[str, tuple[str, ...]]] = {
    **{name: (method.title,) for name, method in listings().items() if name not in NOT_THERE},
    "source": (SOURCE,),
    **{name: (theirs, "LAME") for name, theirs in LAMES.items()},
}


@dataclass(frozen=True)
class PaperRow:
    """A number of the paper: accuracy in percent as printed, its deviation, and what is known about it.

    `severity` is None and `corruption` empty where the paper has none. `bold` is how it is printed; `bold_error` says
    "wrong" of a number in bold that is not the best of its line, "missing" of a best one that is not in bold.
    """

    table: str
    dataset: str
    severity: int | None
    corruption: str
    method: str
    accuracy: float
    std: float | None
    corrected: float | None
    bold: bool
    bold_error: BoldError
    note: str

    @property
    def value(self) -> float:
        """The accuracy, corrected where the printed one is a misprint."""
        return self.accuracy if self.corrected is None else self.corrected


def paper_rows(table: str | None = None) -> list[PaperRow]:
    """The numbers of one table, or of all of them, in the paper's order.

    >>> len(paper_rows()), paper_rows("visdac")[0].accuracy
    (761, 46.31)
    """
    rows = _all_rows()
    names = list(dict.fromkeys(row.table for row in rows))
    if table is not None and table not in names:
        raise InputError(f"the paper has no table {table!r}{nearest(table, names)}")
    return [row for row in rows if table in (None, row.table)]


def find(dataset: str, severity: int | None, corruption: str, method: str) -> PaperRow | None:
    """The number of a method, by our names or the paper's; `corruption` may be "average"."""
    place = (paper_data(dataset), severity or None, "" if corruption == CLEAN else corruption)
    for name in paper_names(method):
        if (*place, name) in _by_place():
            return _by_place()[(*place, name)]
    return None


def paper_accuracy(dataset: str, severity: int | None, corruption: str, method: str) -> float | None:
    """The paper's accuracy in percent, known misprints corrected; None where the paper has no such number.

    >>> paper_accuracy("cifar10", 5, "fog", "nc_ttt"), paper_accuracy("cifar10-c", 5, "fog", "ttt_flow")
    (86.85, None)
    """
    row = find(dataset, severity, corruption, method)
    return None if row is None else row.value


@lru_cache(maxsize=1)
def _all_rows() -> tuple[PaperRow, ...]:
    text = files("ncttt.report.paper").joinpath("tables.csv").read_text(encoding="utf-8")
    return tuple(_row(line) for line in csv.DictReader(text.splitlines()))


@lru_cache(maxsize=1)
def _by_place() -> dict[tuple[str, int | None, str, str], PaperRow]:
    return {(row.dataset, row.severity, row.corruption, row.method): row for row in _all_rows()}


def _row(line: Mapping[str, str]) -> PaperRow:
    error = line["bold_error"]
    assert error in ("", "wrong", "missing")
    return PaperRow(
        line["table"],
        line["dataset"],
        int(line["severity"]) if line["severity"] else None,
        line["corruption"],
        line["method"],
        float(line["accuracy"]),
        _real(line["std"]),
        _real(line["corrected"]),
        line["bold"] == "yes",
        error,
        line["note"],
    )


def _real(text: str) -> float | None:
    return float(text) if text else None


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
