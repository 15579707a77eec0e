"""Tables as text, by the name of the form."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ncttt.base.errors import InputError, nearest
from ncttt.report.rendering.csv_table import as_csv
from ncttt.report.rendering.latex import as_latex
from ncttt.report.rendering.markdown import as_markdown
from ncttt.report.rendering.terminal import as_box
from ncttt.report.table import Table

FORMS: dict[str, Callable[[Table], str]] = {
    "terminal": as_box,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
}


def render(tables: Table | Iterable[Table], form: str = "markdown") -> str:
    """Tables as Markdown, as LaTeX or as a terminal shows them, one below the other, or one table as CSV."""
    if form not in FORMS:
        raise InputError(f"no form {form!r} of a table{nearest(form, FORMS)}")
    asked = [tables] if isinstance(tables, Table) else list(tables)
    if form == "csv" and len(asked) != 1:
        raise InputError(f"a CSV holds one table; found {len(asked)}: write a file for each")
    return "\n".join(FORMS[form](table) for table in asked)
