"""A setup and its lines, as the page shows them: what was measured alike, and a line for each method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ncttt.data.corruptions import CLEAN
from ncttt.report.accuracy import Row
from ncttt.report.names import Column, needs_of
from ncttt.report.page.names import short_data
from ncttt.report.shares import Share
from ncttt.report.table import Number


@dataclass(frozen=True)
class MethodLine:
    """One method in one setup: accuracy on each corruption and over all, and what its gain is made of.

    `facets` are what the page is filtered by; `gain` is that over the same checkpoint without adaptation. Charts leave
    out what is `repeated`: a method on another checkpoint than the one that most lines of the setup are of.
    """

    name: str
    column: Column
    repeated: bool
    facets: dict[str, str]
    rows: tuple[Row, ...]
    mean: Number | None
    gain: Number | None
    each: dict[str, Number]
    besides: dict[str, float | None]
    share: Share | None
    share_of: tuple[Share, ...]

    @property
    def model(self) -> str:
        """The name of its checkpoint."""
        return self.facets["checkpoint"]

    @property
    def needs(self) -> str:
        """What its method needs of the source."""
        return needs_of(self.column.method)

    @property
    def milliseconds(self) -> float | None:
        """Time per image, adaptation included."""
        speed = self.besides["images_per_second"]
        return 1000 / speed if speed else None

    @property
    def clean(self) -> Number | None:
        """Accuracy on clean images, where they were measured."""
        return self.each.get(CLEAN)


@dataclass(frozen=True)
class Setup:
    """Rows that may stand in one table: `corruptions` are all of its lines, `scored` those that count in the mean."""

    title: str
    axes: dict[str, Any]
    facets: dict[str, str]
    corruptions: tuple[str, ...]
    scored: tuple[str, ...]
    lines: tuple[MethodLine, ...]

    @property
    def name(self) -> str:
        """The title without what all have in common, and without a path.

        >>> Setup("Accuracy (%) on cifar10, severity 5", {}, {"data": "cifar10"}, (), (), ()).name
        'CIFAR-10, severity 5'
        """
        data = self.facets["data"]
        return short_data(data) + self.title.removeprefix(f"Accuracy (%) on {data}")

    @property
    def place(self) -> tuple[Any, ...]:
        """What tells it from other setups, whatever it is called."""
        return (self.facets["data"], *self.axes.values())

    @property
    def ranked(self) -> list[MethodLine]:
        """The lines with a mean, the most accurate first."""
        known = [(line.mean.mean, line) for line in self.lines if line.mean]
        return [line for _, line in sorted(known, key=lambda pair: -pair[0])]

    @property
    def is_stream(self) -> bool:
        """Whether one row saw many corruptions, so that only its accuracy is known for each."""
        return self.axes["sequence"] is not None
