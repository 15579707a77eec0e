"""What `ncttt bench` and its relatives print."""

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

from ncttt.benchmark.attribution import Attribution
from ncttt.benchmark.cell import Cell
from ncttt.benchmark.tuning import Found
from ncttt.benchmark.watching import name_of
from ncttt.errors import InputError


def show(headers: Sequence[str], body: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; lines with tabs when piped."""
    if not sys.stdout.isatty():
        for line in (headers, *body):
            print("\t".join(line))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for number, header in enumerate(headers):
        table.add_column(header, justify="left" if number < 2 else "right")
    for line in body:
        table.add_row(*line)
    Console().print(table)


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


def complain(failures: Sequence[tuple[Cell, str]]) -> None:
    """Raise if cells failed; those that did not are kept."""
    if failures:
        cell, error = failures[0]
        count = f"{len(failures)} cells failed" if len(failures) > 1 else "one cell failed"
        raise InputError(f"{count}, the others are kept; {name_of(cell)}: {error}")
