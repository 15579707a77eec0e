"""Our numbers next to the paper's: ours, theirs, and the difference, where both have one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.report.accuracy import Measurements, Row, corruptions_only, measurements
from ncttt.report.names import Column, spelled
from ncttt.report.paper.rows import AVERAGE, PaperRow, find, paper_data, paper_rows
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


def vs_paper(rows: Iterable[Row], names: Mapping[str, str] | None = None, *, data: str | None = None) -> list[Table]:
    """Tables of our accuracy, the paper's and the difference, for each method and corruption that both have.

    `names` says which of the paper's methods a label of ours stands for, where the label does not; `data` is the
    paper's data set to compare with, where the rows are of another that stands for it.
    """
    every = measurements(rows)
    shown = [table for measured in every if (table := _table(measured, names or {}, data)) is not None]
    if not shown:
        asked = "; ".join(f"{measured.title} ({', '.join(measured.names.values())})" for measured in every)
        raise InputError(f"the paper has no number for any of: {asked}. It has {_known()}")
    return shown


def paper_mean_of(data: str, severity: int | None, corruptions: Iterable[str], label: str) -> float | None:
    """The paper's accuracy of a method, averaged over these corruptions; None if it lacks one of them.

    >>> paper_mean_of("cifar10", 5, ["fog"], "nc_ttt"), paper_mean_of("visda-c", None, ["clean"], "ptbn")
    (86.85, 60.33)
    """
    rows = [find(data, severity, corruption, label) for corruption in corruptions]
    return average(row.value for row in rows if row) if rows and all(rows) else None


def _table(measured: Measurements, names: Mapping[str, str], data: str | None) -> Table | None:
    asked = data or measured.data
    every = (_pair(measured, column, name, names, asked) for column, name in measured.names.items())
    pairs = [pair for pair in every if pair.theirs]
    if not pairs:
        return None
    shown = [name for name in measured.corruptions if any(name in pair.theirs for pair in pairs)]
    footnotes = remarks([row for pair in pairs for row in pair.theirs.values()])
    shifts = corruptions_only(shown)
    return Table(
        f"{measured.title}: ours and the paper's",
        "Corruption",
        tuple(f"{pair.name}{part}" for pair in pairs for part in ("", " paper", " difference")),
        tuple(Line(spelled(name), _across(measured, pairs, name, footnotes)) for name in shown),
        _total(measured, pairs, shifts, footnotes) if len(shifts) > 1 else None,
        tuple(footnotes),
        _notes(measured, pairs, asked),
    )


def _pair(measured: Measurements, column: Column, name: str, names: Mapping[str, str], data: str) -> _Pair:
    label, ours = names.get(column.label, column.label), list(measured.accuracy[column])
    asked = [*ours, AVERAGE] if set(CORRUPTIONS) <= set(ours) else ours  # the paper's average is over all fifteen
    theirs = {corruption: find(data, measured.axes["severity"], corruption, label) for corruption in asked}
    return _Pair(name, column, {corruption: row for corruption, row in theirs.items() if row is not None})


def _across(measured: Measurements, pairs: Iterable[_Pair], corruption: str, footnotes: list[str]) -> Numbers:
    numbers: list[Number | None] = []
    for pair in pairs:
        row = pair.theirs.get(corruption)
        numbers += _three(measured.number(pair.column, corruption), row and paper_number(row, footnotes))
    return tuple(numbers)


def _total(measured: Measurements, pairs: Iterable[_Pair], corruptions: list[str], footnotes: list[str]) -> Line:
    numbers: list[Number | None] = []
    for pair in pairs:
        numbers += _three(measured.mean(pair.column, corruptions), _paper_mean(pair, corruptions, footnotes))
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


def _notes(measured: Measurements, pairs: list[_Pair], data: str) -> tuple[str, ...]:
    batch = PAPER_BATCH.get(paper_data(data), 128)
    notes = [f"The paper: ResNet-50, batches of {batch} images, the weights restored after each batch."]
    if any(row.method == "LAME" for pair in pairs for row in pair.theirs.values()):
        notes.append(WHICH_LAME)
    if data != measured.data:
        notes.append(f"Ours are of {measured.data}, the paper's of {data}: compare gains, not accuracies.")
    return tuple(notes)


def _known() -> str:
    places = dict.fromkeys((row.dataset, row.severity) for row in paper_rows())
    return ", ".join(data if severity is None else f"{data} severity {severity}" for data, severity in places)
