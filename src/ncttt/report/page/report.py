"""All that `ncttt report` does: rows from stores and CSV files, with what only a store can give, as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncttt import benchmark
from ncttt.base.errors import InputError
from ncttt.report import page

if TYPE_CHECKING:
    from ncttt.report.page import Example, Verdict


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
        own = benchmark.read_rows(path)
        if not own:
            raise InputError(f"{path} has no rows; measure some with ncttt bench")
        if path.suffix != ".csv":
            with benchmark.Store(path, read_only=True) as store:
                verdicts += page.verdicts_of(store, own)
                shown += page.examples_of(store, own, examples - len(shown))
        for row in own:
            rows.setdefault(row["key"], row)
    every = list(rows.values())
    written = page.write_page(every, out, title=title, examples=shown, verdicts=verdicts)
    findings = [page.finding(setup, verdicts) for setup in page.setups_of(every)]
    return Report(written, every, [{"setup": one.setup.name, "says": [one.first, *one.others]} for one in findings])
