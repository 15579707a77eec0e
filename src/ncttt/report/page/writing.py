"""The page as one file that needs no other, and the tables next to it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ncttt.base.errors import InputError
from ncttt.base.files import replace_files
from ncttt.report.accuracy import Row, tables
from ncttt.report.names import spelled
from ncttt.report.page import svg
from ncttt.report.page.collect import Example, Page, collect
from ncttt.report.page.significance import Verdict
from ncttt.report.palette import SERIES
from ncttt.report.rendering import render
from ncttt.report.table import Table, cell_text

PAGE = "index.html"
ENDINGS = {"markdown": "md", "latex": "tex"}


def write_page(
    rows: Iterable[Row],
    out: str | Path,
    *,
    title: str | None = None,
    examples: Iterable[Example] = (),
    verdicts: Sequence[Verdict] = (),
) -> Path:
    """Write `index.html` into the folder `out`, and its tables as Markdown, LaTeX and CSV; returns the page's path.

    `examples` are images with predictions before and after; `verdicts` are those of `verdicts_of`, which needs a store.
    """
    rows, folder = list(rows), Path(out)
    contents = {PAGE: page_html(collect(rows, title, examples, verdicts)), **_table_files(rows)}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"a report is written into a folder; {folder} is a file")
    folder.mkdir(parents=True, exist_ok=True)
    replace_files({folder / name: text.encode() for name, text in contents.items()})
    return folder / PAGE


def page_html(page: Page) -> str:
    """The page laid out, everything that it needs inside; whatever rows say is escaped."""
    environment = Environment(
        loader=PackageLoader("ncttt.report.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell_text": cell_text, "spelled": spelled, "png": _data_address}
    script = _own_file("page.js")
    return environment.get_template("page.html.j2").render(
        page=page, svg=svg, series=SERIES, style=_own_file("style.css"), script=script, script_hash=_digest(script)
    )


def _own_file(name: str) -> Markup:
    return Markup(files("ncttt.report.page").joinpath(name).read_text("utf-8"))


def _digest(script: str) -> str:
    """What lets the browser run this script and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _data_address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _table_files(rows: Sequence[Row]) -> dict[str, str]:
    """One file of each form; a CSV holds one table, so several make several files."""
    every: list[Table] = []
    for data in sorted({row["data"] for row in rows}):
        every += tables([row for row in rows if row["data"] == data])
    texts = {f"tables.{ending}": render(every, form) for form, ending in ENDINGS.items()}
    names = ["tables.csv"] if len(every) == 1 else [f"tables-{number}.csv" for number in range(1, len(every) + 1)]
    return texts | {name: render(table, "csv") for name, table in zip(names, every, strict=True)}
