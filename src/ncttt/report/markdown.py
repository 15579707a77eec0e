"""A table as Markdown, as GitHub and most renderers understand it."""

from __future__ import annotations

import re

from ncttt.report.table import Line, Number, Table, number_text

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SPECIAL = re.compile(r"[\\`*|<>\[\]]|(?<![^\W_])_|_(?![^\W_])")  # an underscore inside a word needs no escape


def as_markdown(table: Table) -> str:
    """The table in Markdown: title, pipes, notes; the best in bold."""
    parts = [f"**{escaped(table.title)}**"] if table.title else []
    parts.append("\n".join([_line([table.corner, *table.columns]), _rule(table), *map(_numbers, table.all_lines)]))
    parts += [f"{raised(str(mark))} {escaped(note)}" for mark, note in enumerate(table.footnotes, start=1)]
    parts += [escaped(note) for note in table.notes]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is.

    >>> print(escaped("a|b nc_ttt *"))
    a\\|b nc_ttt \\*
    """
    return _SPECIAL.sub(lambda found: "\\" + found[0], " ".join(text.split()))


def raised(digits: str) -> str:
    """Digits as superscripts, which need no markup.

    >>> raised("12")
    '¹²'
    """
    return digits.translate(_RAISED)


def _line(texts: list[str]) -> str:
    return _joined([escaped(text) for text in texts])


def _rule(table: Table) -> str:
    return _joined([":---", *["---:"] * len(table.columns)])


def _numbers(line: Line) -> str:
    return _joined([escaped(line.name), *map(_number, line.numbers)])


def _number(number: Number | None) -> str:
    text = escaped(number_text(number))
    if number is None:
        return text
    marks = raised(",".join(map(str, number.marks)))
    return (f"**{text}**" if number.bold else text) + marks


def _joined(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
