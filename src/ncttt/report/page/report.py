"""A report from files of rows: one page that needs no other file, and its tables next to it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ncttt import benchmark
from ncttt.base.errors import InputError
from ncttt.base.files import replace_files
from ncttt.base.locks import alone_with
from ncttt.benchmark.rows import of_attribution
from ncttt.report import page
from ncttt.report.accuracy import Row, tables
from ncttt.report.names import spelled
from ncttt.report.page import svg
from ncttt.report.page.collect import Example, Page, collect
from ncttt.report.page.verdicts import Verdict
from ncttt.report.palette import SERIES
from ncttt.report.rendering import render
from ncttt.report.table import Table, cell_text

if TYPE_CHECKING:
    from ncttt.report.page import Example, Verdict

PAGE = "index.html"
ENDINGS = {"markdown": "md", "latex": "tex"}


@dataclass(frozen=True)
class Report:
    """A page that was written: where it is, the rows on it, and what it says first, setup by setup."""

    page: Path
    rows: list[Mapping[str, Any]]
    findings: list[dict[str, Any]]


def write_report(
    paths: Sequence[str | Path], out: str | Path = "runs/report", *, title: str | None = None, examples: int = 12
) -> Report:
    """Write a page that shows what rows tell into a folder, and their tables next to it.

    Args:
        paths: Stores of `ncttt bench`, or CSV files that `ncttt rows export` wrote; a cell of several counts once.
        out: Folder to write into.
        title: Of the page; by default the names of the data sets.
        examples: Images to show before and after, where a store has predictions and its images lie next to it.
    """
    if examples < 0:
        raise InputError(f"examples are 0 or more; found {examples}")
    rows: dict[str, Mapping[str, Any]] = {}
    shown: list[Example] = []
    verdicts: list[Verdict] = []
    for path in map(Path, paths):
        read = benchmark.read_rows(path)
        own = [row for row in read if not of_attribution(row)] or read
        if not own:
            raise InputError(f"{path} has no rows; measure some with ncttt bench")
        if path.suffix != ".csv":
            with benchmark.Store(path, read_only=True) as store:
                verdicts += page.verdicts_of(store, own)
                shown += page.examples_of(store, own, examples - len(shown))
        for row in own:
            rows.setdefault(row["key"], row)
    every = list(rows.values())
    written = page.write_page(every, out, title=title, examples=shown, verdicts=verdicts, read=paths)
    findings = [page.finding(setup, verdicts) for setup in page.setups_of(every)]
    return Report(written, every, [{"setup": one.setup.name, "says": [one.first, *one.others]} for one in findings])


def write_page(
    rows: Iterable[Row],
    out: str | Path,
    *,
    title: str | None = None,
    examples: Iterable[Example] = (),
    verdicts: Sequence[Verdict] = (),
    read: Iterable[str | Path] = (),
) -> Path:
    """Write `index.html` into the folder `out`, and its tables as Markdown, LaTeX and CSV; returns the page's path.

    `examples` are images with predictions before and after; `verdicts` are those of `verdicts_of`, which needs a store.
    `read` are the files that the rows come from, none of which is replaced.
    """
    rows, folder = list(rows), Path(out)
    contents = {PAGE: page_html(collect(rows, title, examples, verdicts)), **_table_files(rows)}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"a report is written into a folder; {folder} is a file")
    for path in map(Path, read):
        if path.name in contents and folder.is_dir() and path.parent.samefile(folder):
            raise InputError(f"{path} has the rows, and a file of the report has its name; choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    with alone_with(folder):
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
    return Markup(files("ncttt.report.page").joinpath(name).read_text("utf-8"))  # nosec B704 # a file of ours


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
