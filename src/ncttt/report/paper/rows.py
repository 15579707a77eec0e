"""The paper's numbers as they are printed, with corrections of misprints and errors of its bold type beside them.

`tables.csv` holds them; its columns `corrected`, `bold`, `bold_error` and `note` are ours.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from ncttt.base.errors import InputError, nearest
from ncttt.data.corruptions import CLEAN
from ncttt.report.paper.names import paper_data, paper_names

AVERAGE = "average"
BoldError = Literal["", "wrong", "missing"]


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
