"""A table on a terminal: drawn with lines where somebody looks at it, fields between tabs where a program reads it."""

from __future__ import annotations

import sys
from io import StringIO
from typing import Any

from ncttt.report.table import Table, cell_text

WIDTH = 120  # characters of a table that is drawn for no terminal in particular
ENDLESS = 10_000  # characters that no table has in a line
LEFT = 2  # the first columns name a line, the others are mostly numbers


def show(table: Table) -> None:
    """Print a table to standard output: drawn on a terminal, lines with tabs when piped."""
    if not sys.stdout.isatty():
        for line in _texts(table):
            print("\t".join(line))
        return
    from rich.console import Console  # a tenth of a second, which piped output does not wait for

    console = Console(markup=False)
    console.print(_fitting(table, console))


def as_box(table: Table) -> str:
    """The table as a terminal shows it, without colours."""
    from rich.console import Console  # as above

    text = StringIO()
    Console(file=text, width=WIDTH, markup=False).print(_drawn(table))
    return text.getvalue()


def _fitting(table: Table, console: Any) -> Any:
    """A table with its frame, or where that is too wide for the console without, its headers a word a line."""
    framed = _drawn(table)
    natural = console.measure(framed, options=console.options.update(width=ENDLESS)).maximum
    return framed if natural <= console.width else _drawn(table, narrow=True)


def _drawn(table: Table, narrow: bool = False) -> Any:
    from rich import box  # as above
    from rich.table import Table as Drawn

    headers, *body = _texts(table)
    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": 0, "show_edge": False} if narrow else {}
    drawn = Drawn(title=table.title or None, caption="\n".join((*table.footnotes, *table.notes)) or None, **look)
    for number, header in enumerate(headers):
        text = header.replace(" ", "\n") if narrow else header
        drawn.add_column(text, justify="left" if number < LEFT else "right", vertical="bottom")
    for number, line in enumerate(body, start=1):
        drawn.add_row(*line, end_section=number == len(table.lines) and table.total is not None)
    return drawn


def _texts(table: Table) -> list[list[str]]:
    """The header and every line as texts."""
    return [[table.corner, *table.columns], *([line.name, *map(cell_text, line.cells)] for line in table.all_lines)]
