"""The paper's tables again: misprints corrected, the best in bold, and what differs from print said below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ncttt.base.errors import InputError, nearest
from ncttt.report.names import spelled
from ncttt.report.paper.rows import AVERAGE, PaperRow, paper_rows
from ncttt.report.table import Line, Number, Table, best_in_bold, transposed

TITLES: Final = {
    "cifar10c_level5": "Accuracy (%) on CIFAR-10-C, severity 5 (the paper's Table 1)",
    "cifar100c_level5": "Accuracy (%) on CIFAR-100-C, severity 5 (the paper's Table 2)",
    "visdac": "Accuracy (%) on VisDA-C (the paper's Table 3)",
    "cifar10c_level4": "Accuracy (%) on CIFAR-10-C, severity 4 (the paper's Table 4)",
    "cifar10c_level3": "Accuracy (%) on CIFAR-10-C, severity 3 (the paper's Table 5)",
    "cifar10c_level2": "Accuracy (%) on CIFAR-10-C, severity 2 (the paper's Table 6)",
    "cifar10c_level1": "Accuracy (%) on CIFAR-10-C, severity 1 (the paper's Table 7)",
}


def paper_table(name: str) -> Table:
    """A table of the paper by its name in the shipped numbers, such as "cifar10c_level5".

    >>> line = paper_table("visdac").lines[-1]
    >>> line.name, line.cells[0].mean, line.cells[0].bold
    ('NC-TTT', 62.71, True)
    """
    if name not in TITLES:
        raise InputError(f"the paper has no table {name!r}{nearest(name, TITLES)}")
    rows = paper_rows(name)
    footnotes = remarks(rows)
    groups: dict[str, list[PaperRow]] = {}
    for row in rows:
        groups.setdefault(row.corruption, []).append(row)
    lines = {corruption: _line(corruption, group, footnotes) for corruption, group in groups.items()}
    total = lines.pop(AVERAGE, None)
    notes = tuple(note for group in groups.values() for note in _bold_notes(group))
    columns = tuple(row.method for row in next(iter(groups.values())))
    table = Table(TITLES[name], "Corruption", columns, tuple(lines.values()), total, tuple(footnotes), notes)
    return table if total else transposed(table, "Method")


def remarks(rows: Sequence[PaperRow]) -> list[str]:
    """The footnotes that these numbers need, each once."""
    return list(dict.fromkeys(remark(row) for row in rows if row.note))


def remark(row: PaperRow) -> str:
    """What is known to be wrong with a number."""
    printed = "" if row.corrected is None else f"printed as {row.accuracy:.2f}; "
    return f"{row.method}, {row.corruption.replace('_', ' ')}: {printed}{row.note}."


def paper_number(row: PaperRow, footnotes: Sequence[str]) -> Number:
    """A number of the paper, which points to its footnote."""
    return Number(row.value, row.std, marks=(footnotes.index(remark(row)) + 1,) if row.note else ())


def _line(corruption: str, rows: Sequence[PaperRow], footnotes: Sequence[str]) -> Line:
    numbers = best_in_bold([paper_number(row, footnotes) for row in rows])
    return Line(spelled(corruption) or "Accuracy (%)", numbers)


def _bold_notes(rows: Sequence[PaperRow]) -> list[str]:
    """What the paper sets in bold and should not, or should and does not."""
    wrong = [row for row in rows if row.bold_error]
    if not wrong:
        return []
    best = max(rows, key=lambda row: row.value)
    named = " and ".join(f"{row.method} ({row.value:.2f})" for row in wrong if row.bold)
    too = "" if best.bold_error else ", too"
    return [
        f"{spelled(rows[0].corruption)}: the paper prints {named} in bold{too}; the best is "
        f"{best.method} ({best.value:.2f})."
    ]
