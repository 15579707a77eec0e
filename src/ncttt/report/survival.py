"""Who survives what: the gain of each method over the source model, on each kind of stream and with each batch size.

Means over corruptions hide that a method which leads on shuffled batches of 128 images may fall below the unadapted
model where classes come in runs, where corruptions come again, or where images come one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ncttt.data.corruptions import CLEAN
from ncttt.report.names import Column, column_of, needs_of
from ncttt.report.page.names import line_names, main_checkpoint, model_names, short_data
from ncttt.report.shares import OWN_NORM, same_images, unadapted
from ncttt.report.streams import domains_of, kind_of, kind_order
from ncttt.report.table import TIE, Cell, Line, Number, Table, average, best_in_bold

Row = Mapping[str, Any]
Stream = tuple[Any, ...]  # its place among the columns, then its name and batch size
Place = tuple[Any, ...]

LOSS: Final = 2.0  # points behind batch statistics that a method may have and still survive
SETUP = ("data", "split", "severity", "constants", "protocol", "threads", "device")
SURVIVES, FALLS, FAILS, UNKNOWN = "", "falls", "fails", "no PTBN"
NOTES = (
    f"A gain without a word survives: it is at most {LOSS:g} points below that of batch statistics (PTBN) on the same "
    "stream and checkpoint. falls: it is lower. fails: the method is worse than the source model.",
    "A column is the kind of a stream and its batch size. The source model is the same checkpoint without adaptation. "
    "Cells are means over corruptions and seeds, and empty where one is missing.",
)


@dataclass(frozen=True)
class Survival:
    """One method on one stream, in points: its gain over the source model, and its lead over batch statistics."""

    gain: float
    lead: float | None

    @property
    def word(self) -> str:
        """What a table says of it; nothing where it survives.

        >>> [Survival(gain, lead).word for gain, lead in ((20.0, -1.9), (20.0, -2.1), (-0.1, 5.0), (3.0, None))]
        ['', 'falls', 'fails', 'no PTBN']
        """
        if self.gain < -TIE:
            return FAILS
        if self.lead is None:
            return UNKNOWN
        return SURVIVES if self.lead >= -LOSS - TIE else FALLS


def survival_tables(rows: Iterable[Row]) -> list[Table]:
    """A table for each setup that was measured on several kinds of streams or with several batch sizes.

    A line is a method with what it needs of the source and the number of streams that it survives, the most first; the
    last line is the accuracy of the source model. Clean images do not count.
    """
    rows = [row for row in rows if row["corruption"] != CLEAN]
    still = unadapted(rows)
    groups: dict[Place, list[Row]] = {}
    for row in rows:
        groups.setdefault(_setup(row), []).append(row)
    tables = [_table(group, still) for _, group in sorted(groups.items(), key=lambda item: str(item[0]))]
    return [table for table in tables if table is not None]


def _setup(row: Row) -> Place:
    return (*(row.get(name) for name in SETUP), _images(row))


def _images(row: Row) -> int:
    """The number of images in each domain."""
    return (row.get("images") or 0) // len(domains_of(row))


def _stream(row: Row) -> Stream:
    return (*kind_order(row), -(row.get("batch_size") or 0), kind_of(row), row.get("batch_size"))


def _table(rows: Sequence[Row], still: Mapping[Place, Row]) -> Table | None:
    parts: dict[Stream, list[Row]] = {}
    for row in rows:
        parts.setdefault(_stream(row), []).append(row)
    streams = sorted(parts)
    columns = list(dict.fromkeys(column_of(row) for row in rows))
    names = line_names(columns, model_names(columns))
    found = {
        column: [_survival(_complete(parts[stream], column), still) for stream in streams]
        for column in names
        if column.method != "source"
    }
    measured = {column: own for column, own in found.items() if any(own)}
    if len(streams) < 2 or not measured:
        return None
    in_order = sorted(measured, key=lambda column: _rank(measured[column]), reverse=True)
    gains = zip(*(map(_number, measured[column]) for column in in_order), strict=True)
    lines = [
        Line(names[column], (needs_of(column.method), _count(measured[column]), *cells))
        for column, cells in zip(in_order, zip(*map(best_in_bold, gains), strict=True), strict=True)
    ]
    headers = ("Needs of the source", "Survives", *(f"{name} {size}" for *_, name, size in streams))
    source = _source([parts[stream] for stream in streams], names)
    return Table(_title(rows[0]), "Method", headers, tuple(lines), source, notes=NOTES)


def _survival(rows: Sequence[Row], still: Mapping[Place, Row]) -> Survival | None:
    """A method on a stream by its rows; None without them, or where the source model was not measured."""
    source, batch = ([still.get((name, *same_images(row))) for row in rows] for name in OWN_NORM)
    if not rows or None in source:
        return None
    own = _mean(rows)
    return Survival(own - _mean(source), None if None in batch else own - _mean(batch))


def _complete(rows: Sequence[Row], column: Column) -> list[Row]:
    """The rows of a method among those of a stream, or none if others were measured on more."""
    own = [row for row in rows if column_of(row) == column]
    return own if {_place(row) for row in own} == {_place(row) for row in rows} else []


def _place(row: Row) -> Place:
    return row["corruption"], row.get("seed")


def _mean(rows: Iterable[Row | None]) -> float:
    return average(100 * row["accuracy"] for row in rows if row is not None)


def _rank(found: Sequence[Survival | None]) -> tuple[int, float]:
    known = [one for one in found if one is not None]
    return sum(one.word == SURVIVES for one in known), average(one.gain for one in known)


def _number(found: Survival | None) -> Number | None:
    return None if found is None else Number(found.gain, signed=True, decimals=1, remark=found.word)


def _count(found: Sequence[Survival | None]) -> str:
    known = [one for one in found if one is not None]
    return f"{sum(one.word == SURVIVES for one in known)} of {len(known)}"


def _source(parts: Sequence[Sequence[Row]], names: Mapping[Column, str]) -> Line | None:
    """The accuracy of the source model that most methods start from, on each stream."""
    own = next((one for one in names if one.method == "source" and one.checkpoint == main_checkpoint(names)), None)
    if own is None:
        return None
    each = [_complete(part, own) for part in parts]
    cells: list[Cell] = [Number(_mean(rows), decimals=1) if rows else None for rows in each]
    return Line(f"{names[own]}: accuracy (%)", ("", "", *cells))


def _title(row: Row) -> str:
    words = [f"{name} {row[name]}" for name in ("severity", "protocol") if row.get(name)]
    words += [f"{_images(row)} images a domain"] if row.get("images") else []
    return ", ".join([f"Gain (points) over the source model on {short_data(str(row['data']))}", *words])
