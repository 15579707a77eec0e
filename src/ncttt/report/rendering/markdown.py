"""A table as Markdown, as GitHub and most renderers understand it."""

from __future__ import annotations

import re

from ncttt.report.table import Cell, Line, Table, cell_text

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SPECIAL = re.compile(r"[\\`*|<>\[\]]|(?<![^\W_])_|_(?![^\W_])")  # an underscore inside a word needs no escape


def as_markdown(table: Table) -> str:
    """The table in Markdown: title, pipes, notes; the best in bold."""
    parts = [f"**{escaped(table.title)}**"] if table.title else []
    names = _joined([escaped(name) for name in (table.corner, *table.columns)])
    parts.append("\n".join([names, _rule(table), *map(_line, table.all_lines)]))
    parts += [f"{raised(str(mark))} {escaped(note)}" for mark, note in enumerate(table.footnotes, start=1)]
    parts += [escaped(note) for note in table.notes]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is.

    >>> print(escaped("a|b nc_ttt *"))
    a\\|b nc_ttt \\*
    """
    return _SPECIAL.sub(lambda sign: "\\" + sign[0], " ".join(text.split()))


def raised(digits: str) -> str:
    """Digits as superscripts, which need no markup.

    >>> raised("12")
    '¹²'
    """
    return digits.translate(_RAISED)


def _rule(table: Table) -> str:
    return _joined([":---", *(":---" if texts else "---:" for texts in table.of_texts)])


def _line(line: Line) -> str:
    return _joined([escaped(line.name), *map(_cell, line.cells)])


def _cell(cell: Cell) -> str:
    text = escaped(cell_text(cell))
    if cell is None or isinstance(cell, str):
        return text
    marks = raised(",".join(map(str, cell.marks)))
    return (f"**{text}**" if cell.bold else text) + marks


def _joined(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
