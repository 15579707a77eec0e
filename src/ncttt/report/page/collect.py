"""All that the page shows, as plain values: computed here, laid out by the template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from ncttt.base.errors import InputError
from ncttt.report.accuracy import AXES, Row
from ncttt.report.names import Column, corruption_order
from ncttt.report.page.curves import Curve, Drift, curves_of, drifts_of
from ncttt.report.page.evidence import Evidence, Stream
from ncttt.report.page.headline import Finding, finding
from ncttt.report.page.lines import MethodLine, Setup
from ncttt.report.page.looks import Look, looks_of
from ncttt.report.page.names import short_data
from ncttt.report.page.origin import Settings, about, grids_of, settings_of
from ncttt.report.page.setups import setups_of
from ncttt.report.page.severities import Severities, severities_of
from ncttt.report.page.takeaways import of_survival, takeaways
from ncttt.report.page.verdicts import Verdict
from ncttt.report.page.words import listed
from ncttt.report.paper.comparison import vs_paper
from ncttt.report.survival import survival_tables
from ncttt.report.table import Number, Table, best_in_bold

LABELS = {"data": "Data", **{name: name.replace("_", " ").capitalize() for name in AXES}, "checkpoint": "Model"}

LARGE = 100  # lines


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
    streams: tuple[Stream, ...]
    verdicts: tuple[Verdict, ...]
    group: Severities | None

    @property
    def shown(self) -> list[MethodLine]:
        """The lines that charts show: of a repeated method the leader alone."""
        leader = self.setup.ranked[:1]
        return [line for line in self.setup.lines if not line.repeated or line in leader]

    @property
    def has_shares(self) -> bool:
        """Whether the gain of any method can be divided."""
        return any(line.share for line in self.setup.lines)

    @property
    def has_cost(self) -> bool:
        """Whether any method with a mean was timed."""
        return any(line.milliseconds and line.mean for line in self.setup.lines)

    @cached_property
    def says(self) -> Mapping[str, str]:
        """A sentence for each chart."""
        return takeaways(self.setup, self.finding.first, self.curves, self.drifts, self.streams, self.group)

    @cached_property
    def names(self) -> dict[Column, str]:
        """The names of its lines."""
        return {line.column: line.name for line in self.setup.lines}

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
    """The page, before it is laid out; `varying` are the axes in which its lines differ, `main` is shown first."""

    title: str
    about: dict[str, str]
    views: tuple[SetupView, ...]
    main: SetupView
    looks: dict[str, Look]
    groups: tuple[Severities, ...]
    corruptions: tuple[str, ...]
    varying: tuple[Facet, ...]
    evidence: Evidence
    settings: tuple[Settings, ...]
    grids: tuple[str, ...]
    paper: tuple[Table, ...]
    survival: tuple[Table, ...]

    @property
    def filters(self) -> list[Facet]:
        """What a reader can choose; the models are told apart by the lines' names."""
        names = dict.fromkeys(line.name for view in self.views for line in view.setup.lines)
        several = [facet for facet in self.varying if facet.name != "checkpoint"]
        return [*several, Facet("method", "Method", tuple(names))] if len(names) > 1 else several

    @property
    def survivors(self) -> str:
        """Who survives most streams, in a sentence."""
        return of_survival(self.survival)

    @property
    def has_intervals(self) -> bool:
        """Whether any difference has an interval."""
        each = [verdict.comparison.overall.difference for verdict in self.evidence.verdicts]
        return any(difference.has_interval for difference in each)

    @property
    def is_large(self) -> bool:
        """Whether tables leave out what only charts of single corruptions need, so that the page stays small."""
        return self.lines > LARGE

    @property
    def lines(self) -> int:
        """How many lines its tables have."""
        return sum(len(view.setup.lines) for view in self.views)


def collect(rows: Sequence[Row], title: str | None, evidence: Evidence) -> Page:
    """Everything that these rows tell."""
    setups = setups_of(rows)
    groups = severities_of(setups)
    facets = [_facet(name, setups) for name in LABELS]
    names = {name for setup in setups for name in setup.corruptions}
    views = tuple(_view(setup, evidence, groups) for setup in setups)
    return Page(
        title or f"Test-time adaptation on {listed(sorted({short_data(str(row['data'])) for row in rows}))}",
        about(rows),
        views,
        max(views, key=_weight),
        looks_of(setups),
        tuple(groups),
        tuple(sorted(names, key=corruption_order)),
        tuple(facet for facet in facets if len(facet.values) > 1),
        evidence,
        tuple(settings_of(rows)),
        tuple(grids_of(rows)),
        tuple(_paper(rows)),
        tuple(survival_tables(rows)),
    )


def _view(setup: Setup, evidence: Evidence, groups: Sequence[Severities]) -> SetupView:
    own = [verdict for verdict in evidence.verdicts if verdict.place == setup.place]
    return SetupView(
        setup,
        finding(setup, own),
        tuple(curves_of(setup)),
        tuple(drifts_of(setup)),
        tuple(stream for stream in evidence.streams if stream.place == setup.place),
        tuple(own),
        next((group for group in groups if setup in group.setups), None),
    )


def _weight(view: SetupView) -> tuple[int, ...]:
    """What makes a setup the one to show first: the most methods, the most images, the hardest shift."""
    axes = view.setup.axes
    images = sum(row.get("images") or 0 for line in view.setup.lines for row in line.rows)
    ranked = len({line.column.label for line in view.setup.ranked})
    return ranked, images, axes["severity"] or 0, axes["batch_size"] or 0


def _best(numbers: dict[str, Number | None]) -> set[str]:
    """The names of the highest numbers; nobody is best where all are alike."""
    shown = zip(numbers, best_in_bold(list(numbers.values())), strict=True)
    best = {name for name, number in shown if number and number.bold}
    return best if len(best) < len(numbers) else set()


def _facet(name: str, setups: Sequence[Setup]) -> Facet:
    values = dict.fromkeys(line.facets[name] for setup in setups for line in setup.lines)
    return Facet(name, LABELS[name], tuple(values))


def _paper(rows: Sequence[Row]) -> Iterator[Table]:
    """Our numbers next to the paper's, for the data sets that it has."""
    for data in sorted({row["data"] for row in rows}):
        with suppress(InputError):  # the paper has none of these
            yield from vs_paper([row for row in rows if row["data"] == data])
