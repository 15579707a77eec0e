"""A table on a terminal: drawn with lines where somebody looks at it, fields between tabs where a program reads it."""

from __future__ import annotations

import sys
from io import StringIO
from typing import Any

from ncttt.report.table import Table, cell_text

WIDTH = 120  # characters of a table that is drawn for no terminal in particular
LEFT = 2  # the first columns name a line, the others are mostly numbers


def show(table: Table) -> None:
    """Print a table to standard output: drawn on a terminal, lines with tabs when piped."""
    if not sys.stdout.isatty():
        for line in _texts(table):
            print("\t".join(line))
        return
    from rich.console import Console  # a tenth of a second, which piped output does not wait for

    Console(markup=False).print(_drawn(table))


def as_box(table: Table) -> str:
    """The table as a terminal shows it, without colours."""
    from rich.console import Console  # as above

    text = StringIO()
    Console(file=text, width=WIDTH, markup=False).print(_drawn(table))
    return text.getvalue()


def _drawn(table: Table) -> Any:
    from rich.table import Table as Drawn  # as above

    headers, *body = _texts(table)
    drawn = Drawn(title=table.title or None, caption="\n".join((*table.footnotes, *table.notes)) or None)
    for number, header in enumerate(headers):
        drawn.add_column(header, justify="left" if number < LEFT else "right")
    for number, line in enumerate(body, start=1):
        drawn.add_row(*line, end_section=number == len(table.lines) and table.total is not None)
    return drawn


def _texts(table: Table) -> list[list[str]]:
    """The header and every line as texts."""
    return [[table.corner, *table.columns], *([line.name, *map(cell_text, line.cells)] for line in table.all_lines)]
