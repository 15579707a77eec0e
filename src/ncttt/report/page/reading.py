"""Rows from stores and CSV files, with what only a store can give: comparisons and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.report.grid import Row
from ncttt.report.page.examples import Example, examples_of
from ncttt.report.page.headline import finding
from ncttt.report.page.luck import Judged, judge
from ncttt.report.page.ways import ways_of


@dataclass(frozen=True)
class Found:
    """All that a page is made of."""

    rows: list[Row]
    examples: list[Example]
    comparisons: list[Judged]

    def findings(self) -> list[dict[str, object]]:
        """What the page says first, as JSON values."""
        found = [finding(way, self.comparisons) for way in ways_of(self.rows)]
        return [{"way": one.way.name, "says": [one.first, *one.others]} for one in found]


def read_all(paths: Sequence[str | Path], examples: int = 0) -> Found:
    """Rows of all files, each cell once; up to `examples` images of the first store that has any."""
    if examples < 0:
        raise InputError(f"examples are 0 or more; found {examples}")
    rows: dict[str, Row] = {}
    shown: list[Example] = []
    judged: list[Judged] = []
    for path in map(Path, paths):
        if not path.is_file():
            raise InputError(f"there is no store or CSV {path}")
        for row in _read(path, examples - len(shown), shown, judged):
            rows.setdefault(row["key"], row)
    return Found(list(rows.values()), shown, judged)


def _read(path: Path, examples: int, shown: list[Example], judged: list[Judged]) -> list[Row]:
    from ncttt.benchmark.store import Store
    from ncttt.benchmark.table import read_csv

    if path.suffix == ".csv":
        rows: list[Row] = list(read_csv(path))
    else:
        with Store(path, read_only=True) as store:
            rows = list(store.rows())
            if rows:
                judged += judge(store, rows)
                shown += examples_of(store, rows, examples)
    if not rows:
        raise InputError(f"{path} has no rows; measure some with ncttt bench")
    return rows
