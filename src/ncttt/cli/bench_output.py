"""What `ncttt bench` and its relatives print."""

import csv
import dataclasses
from collections.abc import Sequence
from io import StringIO
from typing import Any

from ncttt.base.errors import InputError
from ncttt.base.provenance import origin
from ncttt.benchmark.attribution import Attribution
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.search import Search
from ncttt.benchmark.tuning import Found
from ncttt.benchmark.watching import name_of


def as_json(shares: Sequence[Attribution]) -> list[dict[str, Any]]:
    """Shares as JSON values."""
    return [
        {
            **dataclasses.asdict(share.subject),
            "accuracy": share.accuracy,
            **{name: getattr(share, name)._asdict() for name in ("statistics", "gradient", "total")},
        }
        for share in shares
    ]


def as_csv(shares: Sequence[Attribution]) -> bytes:
    """Shares as CSV, a line for each method on a checkpoint."""
    gains = ("statistics", "gradient", "total")
    lines = [
        {
            **dataclasses.asdict(share.subject),
            **share.accuracy,
            **{name: getattr(share, name).mean for name in gains},
            **{f"{name} {bound}": getattr(getattr(share, name), bound) for name in gains for bound in ("low", "high")},
            **origin(),
        }
        for share in shares
    ]
    return _csv(list(lines[0]), [list(line.values()) for line in lines])


def search_as_json(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Trials as JSON values, the best first."""
    return [
        {
            "settings": result.trial.settings,
            "checkpoint": result.trial.checkpoint,
            "accuracy": result.accuracy,
            "gain": result.gain._asdict(),
        }
        for result in found
    ]


def search_as_csv(search: Search, found: Sequence[Found], fresh: Sequence[Found]) -> bytes:
    """Trials as CSV, the best first and those on fresh images last, each with the machine that measured it."""
    names = [*search.trained, *search.adapted]
    where = {"protocol": search.protocol, "images": search.images, "seed": search.seed, **origin()}
    lines = [
        [*(result.trial.settings.get(name, "") for name in names), on, result.accuracy, *result.gain, *where.values()]
        for on, results in (("searched", found), ("fresh", fresh))
        for result in results
    ]
    return _csv([*names, "on", "accuracy", "gain", "low", "high", *where], lines)


def _csv(headers: Sequence[str], lines: Sequence[Sequence[object]]) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([headers, *lines])
    return text.getvalue().encode()


def complain(failures: Sequence[tuple[Cell, str]]) -> None:
    """Raise if cells failed; those that did not are kept."""
    if failures:
        cell, error = failures[0]
        count = f"{len(failures)} cells failed" if len(failures) > 1 else "one cell failed"
        raise InputError(f"{count}, the others are kept; {name_of(cell)}: {error}")
