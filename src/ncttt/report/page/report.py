"""A report from files of rows: one page that needs no other file, and its tables next to it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

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
from ncttt.report.page.charts import chart_data
from ncttt.report.page.collect import Page, collect
from ncttt.report.page.evidence import Evidence, Example, ShiftedImage, Stream
from ncttt.report.page.names import short_data
from ncttt.report.page.verdicts import Verdict
from ncttt.report.palette import style_sheet
from ncttt.report.rendering import render
from ncttt.report.survival import survival_tables
from ncttt.report.table import Table, cell_text

PAGE = "index.html"
SCRIPTS = ("theme.js", "charts.js", "curves.js", "figures.js", "page.js")  # one script, in this order
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
    found: dict[str, list[Any]] = {"examples": [], "verdicts": [], "streams": [], "shifts": []}
    for path in map(Path, paths):
        read = benchmark.read_rows(path)
        own = [row for row in read if not of_attribution(row)] or read
        if not own:
            raise InputError(f"{path} has no rows; measure some with ncttt bench")
        if path.suffix != ".csv":
            _add_evidence(found, path, own, examples)
        for row in own:
            rows.setdefault(row["key"], row)
    every = list(rows.values())
    written = page.write_page(every, out, title=title, read=paths, **found)
    findings = [page.finding(setup, found["verdicts"]) for setup in page.setups_of(every)]
    return Report(written, every, [{"setup": one.setup.name, "says": [one.first, *one.others]} for one in findings])


def _add_evidence(found: dict[str, list[Any]], path: Path, rows: Sequence[Row], examples: int) -> None:
    """What only a store has; one set of images says what a shift looks like."""
    with benchmark.Store(path, read_only=True) as store:
        found["verdicts"] += page.verdicts_of(store, rows)
        found["streams"] += page.streams_of(store, rows)
        found["examples"] += page.examples_of(store, rows, examples - len(found["examples"]))
        if examples and not found["shifts"]:
            found["shifts"] += page.shifts_of(store, rows)


def write_page(
    rows: Iterable[Row],
    out: str | Path,
    *,
    title: str | None = None,
    examples: Iterable[Example] = (),
    verdicts: Sequence[Verdict] = (),
    streams: Sequence[Stream] = (),
    shifts: Iterable[ShiftedImage] = (),
    read: Iterable[str | Path] = (),
) -> Path:
    """Write `index.html` into the folder `out`, and its tables as Markdown, LaTeX and CSV; returns the page's path.

    `examples` are images with predictions before and after, `shifts` one image under each corruption; `verdicts` and
    `streams` are those of `verdicts_of` and `streams_of`. All of them need a store.
    `read` are the files that the rows come from, none of which is replaced.
    """
    rows, folder = list(rows), Path(out)
    evidence = Evidence(tuple(examples), tuple(verdicts), tuple(streams), tuple(shifts))
    contents = {PAGE: page_html(collect(rows, title, evidence)), **_table_files(rows)}
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
    environment.filters |= {"cell_text": cell_text, "spelled": spelled, "png": _data_address, "data_name": short_data}
    library, script = _own_file("vendor/echarts.min.js"), Markup("\n").join(_own_file(name) for name in SCRIPTS)
    return environment.get_template("page.html.j2").render(
        page=page,
        data=chart_data(page),
        style=Markup(style_sheet()) + _own_file("style.css"),  # nosec B704 # colours of ours
        scripts=[(script, _digest(script)) for script in (library, script)],
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
    every += survival_tables(rows)
    texts = {f"tables.{ending}": render(every, form) for form, ending in ENDINGS.items()}
    names = ["tables.csv"] if len(every) == 1 else [f"tables-{number}.csv" for number in range(1, len(every) + 1)]
    return texts | {name: render(table, "csv") for name, table in zip(names, every, strict=True)}
