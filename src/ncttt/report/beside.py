"""Our numbers beside the paper's: ours, theirs, and the difference, where both have one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ncttt.base.errors import InputError
from ncttt.report.columns import Column
from ncttt.report.grid import Measurements, Row, corruptions_only, measurements
from ncttt.report.order import CORRUPTIONS, spelled
from ncttt.report.paper.names import paper_data
from ncttt.report.paper.rows import AVERAGE, PaperRow, find, paper_rows
from ncttt.report.paper.tables import paper_number, remarks
from ncttt.report.table import Line, Number, Table, average

Numbers = tuple[Number | None, ...]

PAPER_BATCH = {"visda-c": 50}
WHICH_LAME = "The paper does not say which affinity its LAME has on this data set."


@dataclass(frozen=True)
class _Pair:
    """One of our columns, and the paper's rows for it by corruption."""

    name: str
    column: Column
    theirs: dict[str, PaperRow]


def beside_paper(rows: Iterable[Row], names: Mapping[str, str] | None = None) -> list[Table]:
    """Tables of our accuracy, the paper's and the difference, for each method and corruption that both have.

    `names` says which of the paper's methods a label of ours stands for, where the label does not.
    """
    found = measurements(rows)
    shown = [table for one in found if (table := _table(one, names or {})) is not None]
    if not shown:
        asked = "; ".join(f"{one.title} ({', '.join(one.names.values())})" for one in found)
        raise InputError(f"the paper has no number for any of: {asked}. It has {_known()}")
    return shown


def _table(found: Measurements, names: Mapping[str, str]) -> Table | None:
    pairs = [pair for column, name in found.names.items() if (pair := _pair(found, column, name, names)).theirs]
    if not pairs:
        return None
    shown = [name for name in found.corruptions if any(name in pair.theirs for pair in pairs)]
    footnotes = remarks([row for pair in pairs for row in pair.theirs.values()])
    shifts = corruptions_only(shown)
    return Table(
        f"{found.title}: ours and the paper's",
        "Corruption",
        tuple(f"{pair.name}{part}" for pair in pairs for part in ("", " paper", " difference")),
        tuple(Line(spelled(name), _across(found, pairs, name, footnotes)) for name in shown),
        _total(found, pairs, shifts, footnotes) if len(shifts) > 1 else None,
        tuple(footnotes),
        _notes(found, pairs),
    )


def _pair(found: Measurements, column: Column, name: str, names: Mapping[str, str]) -> _Pair:
    label, ours = names.get(column.label, column.label), list(found.accuracy[column])
    asked = [*ours, AVERAGE] if set(CORRUPTIONS) <= set(ours) else ours  # the paper's average is over all fifteen
    theirs = {corruption: find(found.data, found.axes["severity"], corruption, label) for corruption in asked}
    return _Pair(name, column, {corruption: row for corruption, row in theirs.items() if row is not None})


def _across(found: Measurements, pairs: Iterable[_Pair], corruption: str, footnotes: list[str]) -> Numbers:
    numbers: list[Number | None] = []
    for pair in pairs:
        row = pair.theirs.get(corruption)
        numbers += _three(found.number(pair.column, corruption), row and paper_number(row, footnotes))
    return tuple(numbers)


def _total(found: Measurements, pairs: Iterable[_Pair], corruptions: list[str], footnotes: list[str]) -> Line:
    numbers: list[Number | None] = []
    for pair in pairs:
        numbers += _three(found.mean(pair.column, corruptions), _paper_mean(pair, corruptions, footnotes))
    return Line(f"Mean of {len(corruptions)}", tuple(numbers))


def _paper_mean(pair: _Pair, corruptions: list[str], footnotes: list[str]) -> Number | None:
    """The average that the paper prints, or that of fewer corruptions."""
    if AVERAGE in pair.theirs:
        return paper_number(pair.theirs[AVERAGE], footnotes)
    rows = [pair.theirs.get(name) for name in corruptions]
    return Number(average(row.value for row in rows if row)) if all(rows) else None


def _three(ours: Number | None, theirs: Number | None) -> list[Number | None]:
    if ours is None or theirs is None:
        return [ours, theirs, None]
    return [ours, theirs, Number(ours.mean - theirs.mean, signed=True)]


def _notes(found: Measurements, pairs: list[_Pair]) -> tuple[str, ...]:
    batch = PAPER_BATCH.get(paper_data(found.data), 128)
    notes = [f"The paper: ResNet-50, batches of {batch} images, the weights restored after each batch."]
    if any(row.method == "LAME" for pair in pairs for row in pair.theirs.values()):
        notes.append(WHICH_LAME)
    return tuple(notes)


def _known() -> str:
    places = dict.fromkeys((row.dataset, row.severity) for row in paper_rows())
    return ", ".join(data if severity is None else f"{data} severity {severity}" for data, severity in places)
