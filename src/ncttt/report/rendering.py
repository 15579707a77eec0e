"""One or several tables as text, by the name of the form."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ncttt.errors import InputError, nearest
from ncttt.report.commas import as_csv
from ncttt.report.latex import as_latex
from ncttt.report.markdown import as_markdown
from ncttt.report.table import Table

FORMS: dict[str, Callable[[Table], str]] = {"markdown": as_markdown, "latex": as_latex, "csv": as_csv}


def render(tables: Table | Iterable[Table], form: str = "markdown") -> str:
    """Tables as Markdown, LaTeX or CSV, an empty line between two."""
    if form not in FORMS:
        raise InputError(f"no form {form!r} of a table{nearest(form, FORMS)}")
    return "\n".join(FORMS[form](table) for table in ([tables] if isinstance(tables, Table) else tables))
