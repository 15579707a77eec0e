"""All that the page shows, as plain values: computed here, laid out by the template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from ncttt.base.errors import InputError
from ncttt.report.beside import beside_paper
from ncttt.report.grid import AXES, Row
from ncttt.report.order import corruption_order
from ncttt.report.page.about import Settings, about, settings_of
from ncttt.report.page.curves import Curve, curves_of
from ncttt.report.page.drift import Drift, drifts_of
from ncttt.report.page.examples import Example
from ncttt.report.page.headline import Finding, finding, listed
from ncttt.report.page.luck import Judged
from ncttt.report.page.repeat import grids_of
from ncttt.report.page.ways import Way, ways_of
from ncttt.report.significance import comparison_table
from ncttt.report.table import Number, Table, best_in_bold

LABELS = {"data": "Data", **{name: name.replace("_", " ").capitalize() for name in AXES}, "checkpoint": "Checkpoint"}
ALWAYS = ("severity", "method")  # filters that are there even with one value


@dataclass(frozen=True)
class Facet:
    """Something to filter by, and its values."""

    name: str
    label: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class OfWay:
    """What is drawn for one way beside its lines."""

    way: Way
    finding: Finding
    curves: tuple[Curve, ...]
    drifts: tuple[Drift, ...]
    judged: tuple[tuple[Judged, Table], ...]

    @property
    def has_shares(self) -> bool:
        """Whether the gain of any method can be divided."""
        return any(line.share for line in self.way.lines)

    @cached_property
    def best(self) -> set[str]:
        """The names of the lines with the best mean."""
        return _best({line.name: line.mean for line in self.way.lines})

    @cached_property
    def best_on(self) -> dict[str, set[str]]:
        """The names of the best lines on each corruption."""
        return {
            name: _best({line.name: line.each.get(name) for line in self.way.lines}) for name in self.way.corruptions
        }


@dataclass(frozen=True)
class Page:
    """The page, before it is laid out; `varying` are the axes in which its lines differ."""

    title: str
    about: dict[str, str]
    ways: tuple[OfWay, ...]
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
        return sum(len(one.way.lines) for one in self.ways)


def collect(rows: Sequence[Row], title: str | None, examples: Iterable[Example], comparisons: Sequence[Judged]) -> Page:
    """Everything that these rows tell."""
    ways = ways_of(rows)
    facets = [_facet(name, ways) for name in (*LABELS, "method")]
    names = {name for way in ways for name in way.corruptions}
    return Page(
        title or f"Test-time adaptation on {listed(sorted({str(row['data']) for row in rows}))}",
        about(rows),
        tuple(_of_way(way, comparisons) for way in ways),
        tuple(sorted(names, key=corruption_order)),
        tuple(facet for facet in facets if facet.name != "method" and len(facet.values) > 1),
        tuple(facet for facet in facets if len(facet.values) > 1 or facet.name in ALWAYS),
        tuple(examples),
        tuple(settings_of(rows)),
        tuple(grids_of(rows)),
        tuple(_paper(rows)),
    )


def _of_way(way: Way, comparisons: Sequence[Judged]) -> OfWay:
    own = [one for one in comparisons if one.place == way.place]
    tables = tuple((one, comparison_table(one.found)) for one in own)
    return OfWay(way, finding(way, own), tuple(curves_of(way)), tuple(drifts_of(way)), tables)


def _best(numbers: dict[str, Number | None]) -> set[str]:
    """The names of the highest numbers; nobody is best where all are alike."""
    shown = zip(numbers, best_in_bold(list(numbers.values())), strict=True)
    best = {name for name, number in shown if number and number.bold}
    return best if len(best) < len(numbers) else set()


def _facet(name: str, ways: Sequence[Way]) -> Facet:
    values = dict.fromkeys(line.facets[name] for way in ways for line in way.lines)
    return Facet(name, LABELS.get(name, "Method"), tuple(values))


def _paper(rows: Sequence[Row]) -> Iterator[Table]:
    """Our numbers beside the paper's, for the data sets that it has."""
    for data in sorted({row["data"] for row in rows}):
        with suppress(InputError):  # the paper has none of these
            yield from beside_paper([row for row in rows if row["data"] == data])
