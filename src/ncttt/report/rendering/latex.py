"""A table as LaTeX: a float for any article that loads booktabs."""

from __future__ import annotations

from ncttt.report.table import MISSING, Cell, Line, Table, cell_text

MINUS = "\N{MINUS SIGN}"
_ESCAPES = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    "[": "{[}", "]": "{]}", "*": "{*}",  # which mean something behind a line's end
    "±": r"$\pm$", MINUS: "$-$", MISSING: "--",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def as_latex(table: Table) -> str:
    """The table in LaTeX: caption, booktabs, notes; the best in bold. The preamble needs booktabs alone."""
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            r"\small",
            r"\setlength{\tabcolsep}{3pt}",
            *([f"\\caption{{{escaped(table.title)}}}"] if table.title else []),
            f"\\begin{{tabular}}{{l{''.join('l' if texts else 'r' for texts in table.of_texts)}}}",
            r"\toprule",
            _joined([escaped(text) for text in (table.corner, *table.columns)]),
            r"\midrule",
            *map(_line, table.lines),
            *([] if table.total is None else [r"\midrule", _line(table.total)]),
            r"\bottomrule",
            r"\end{tabular}",
            *_notes(table),
            r"\end{table}",
            "",
        ]
    )


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is.

    >>> print(escaped("50 % of nc_ttt"))
    50 \\% of nc\\_ttt
    """
    return "".join(_ESCAPES.get(sign, sign) for sign in " ".join(text.split()))


def _line(line: Line) -> str:
    return _joined([escaped(line.name), *map(_cell, line.cells)])


def _cell(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return escaped(cell_text(cell))
    text = _mathematical(cell_text(cell))
    marks = f"$^{{{','.join(map(str, cell.marks))}}}$" if cell.marks else ""
    return (f"\\textbf{{{text}}}" if cell.bold else text) + marks


def _mathematical(text: str) -> str:
    """Signs as mathematics sets them: a minus is longer than a hyphen."""
    return escaped(text.replace("-", MINUS)).replace("+", "$+$").replace(" {*}", "$^{*}$")


def _notes(table: Table) -> list[str]:
    """Below the table, a paragraph each."""
    numbered = [f"$^{{{mark}}}$ {escaped(note)}" for mark, note in enumerate(table.footnotes, start=1)]
    return [f"\\par\\footnotesize {note}" for note in (*numbered, *map(escaped, table.notes))]


def _joined(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
