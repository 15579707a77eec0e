"""All that the page shows, as plain values: computed here, laid out by the template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from ncttt.base.errors import InputError
from ncttt.report.accuracy import AXES, Row
from ncttt.report.names import corruption_order
from ncttt.report.page.curves import Curve, Drift, curves_of, drifts_of
from ncttt.report.page.headline import Finding, finding, listed
from ncttt.report.page.origin import Settings, about, grids_of, settings_of
from ncttt.report.page.setups import Setup, setups_of
from ncttt.report.page.verdicts import Verdict
from ncttt.report.paper.comparison import vs_paper
from ncttt.report.significance import comparison_table
from ncttt.report.table import Number, Table, best_in_bold

LABELS = {"data": "Data", **{name: name.replace("_", " ").capitalize() for name in AXES}, "checkpoint": "Checkpoint"}
ALWAYS = ("severity", "method")  # filters that are there even with one value


@dataclass(frozen=True)
class Example:
    """One image as PNG, its class, and what was predicted before and after adaptation."""

    png: bytes
    truth: str
    before: str
    after: str
    corruption: str
    method: str


@dataclass(frozen=True)
class Facet:
    """Something to filter by, and its values."""

    name: str
    label: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SetupView:
    """A setup with all that the page shows of it."""

    setup: Setup
    finding: Finding
    curves: tuple[Curve, ...]
    drifts: tuple[Drift, ...]
    verdicts: tuple[tuple[Verdict, Table], ...]

    @property
    def has_shares(self) -> bool:
        """Whether the gain of any method can be divided."""
        return any(line.share for line in self.setup.lines)

    @cached_property
    def best(self) -> set[str]:
        """The names of the lines with the best mean."""
        return _best({line.name: line.mean for line in self.setup.lines})

    @cached_property
    def best_on(self) -> dict[str, set[str]]:
        """The names of the best lines on each corruption."""
        return {
            name: _best({line.name: line.each.get(name) for line in self.setup.lines})
            for name in self.setup.corruptions
        }


@dataclass(frozen=True)
class Page:
    """The page, before it is laid out; `varying` are the axes in which its lines differ."""

    title: str
    about: dict[str, str]
    views: tuple[SetupView, ...]
    corruptions: tuple[str, ...]
    varying: tuple[Facet, ...]
    filters: tuple[Facet, ...]
    examples: tuple[Example, ...]
    settings: tuple[Settings, ...]
    grids: tuple[str, ...]
    paper: tuple[Table, ...]

    @property
    def lines(self) -> int:
        """How many lines its tables have."""
        return sum(len(view.setup.lines) for view in self.views)


def collect(rows: Sequence[Row], title: str | None, examples: Iterable[Example], verdicts: Sequence[Verdict]) -> Page:
    """Everything that these rows tell."""
    setups = setups_of(rows)
    facets = [_facet(name, setups) for name in (*LABELS, "method")]
    names = {name for setup in setups for name in setup.corruptions}
    return Page(
        title or f"Test-time adaptation on {listed(sorted({str(row['data']) for row in rows}))}",
        about(rows),
        tuple(_view(setup, verdicts) for setup in setups),
        tuple(sorted(names, key=corruption_order)),
        tuple(facet for facet in facets if facet.name != "method" and len(facet.values) > 1),
        tuple(facet for facet in facets if len(facet.values) > 1 or facet.name in ALWAYS),
        tuple(examples),
        tuple(settings_of(rows)),
        tuple(grids_of(rows)),
        tuple(_paper(rows)),
    )


def _view(setup: Setup, verdicts: Sequence[Verdict]) -> SetupView:
    own = [verdict for verdict in verdicts if verdict.place == setup.place]
    tables = tuple((verdict, comparison_table(verdict.comparison)) for verdict in own)
    return SetupView(setup, finding(setup, own), tuple(curves_of(setup)), tuple(drifts_of(setup)), tables)


def _best(numbers: dict[str, Number | None]) -> set[str]:
    """The names of the highest numbers; nobody is best where all are alike."""
    shown = zip(numbers, best_in_bold(list(numbers.values())), strict=True)
    best = {name for name, number in shown if number and number.bold}
    return best if len(best) < len(numbers) else set()


def _facet(name: str, setups: Sequence[Setup]) -> Facet:
    values = dict.fromkeys(line.facets[name] for setup in setups for line in setup.lines)
    return Facet(name, LABELS.get(name, "Method"), tuple(values))


def _paper(rows: Sequence[Row]) -> Iterator[Table]:
    """Our numbers next to the paper's, for the data sets that it has."""
    for data in sorted({row["data"] for row in rows}):
        with suppress(InputError):  # the paper has none of these
            yield from vs_paper([row for row in rows if row["data"] == data])
