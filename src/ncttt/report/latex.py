"""A table as LaTeX: a float for any article that loads booktabs."""

from __future__ import annotations

from ncttt.report.table import MISSING, Line, Number, Table, number_text

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
            f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\toprule",
            _joined([escaped(text) for text in (table.corner, *table.columns)]),
            r"\midrule",
            *map(_numbers, table.lines),
            *([] if table.total is None else [r"\midrule", _numbers(table.total)]),
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


def _numbers(line: Line) -> str:
    return _joined([escaped(line.name), *map(_number, line.numbers)])


def _number(number: Number | None) -> str:
    text = _mathematical(number_text(number))
    if number is None:
        return text
    marks = f"$^{{{','.join(map(str, number.marks))}}}$" if number.marks else ""
    return (f"\\textbf{{{text}}}" if number.bold else text) + marks


def _mathematical(text: str) -> str:
    """Signs as mathematics sets them: a minus is longer than a hyphen."""
    return escaped(text.replace("-", MINUS)).replace("+", "$+$").replace(" {*}", "$^{*}$")


def _notes(table: Table) -> list[str]:
    """Below the table, a paragraph each."""
    numbered = [f"$^{{{mark}}}$ {escaped(note)}" for mark, note in enumerate(table.footnotes, start=1)]
    return [f"\\par\\footnotesize {note}" for note in (*numbered, *map(escaped, table.notes))]


def _joined(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
