"""Small drawings as inline SVG: coordinates are computed here, colours and fonts belong to the style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from ncttt.report.page.curves import Curve, Drift

WIDTH, HEIGHT = 360, 250  # as wide as a telephone, so that texts keep their size there
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 12, 40
KINDS = 6  # looks of a line: colour, dashes and marker
MARKERS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-4-4h8v8h-8z", "M0-5l5 8h-10z", "M0-5l5 5l-5 5l-5-5z",
           "M0 5l5-8h-10z", "M-1.5-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z")  # fmt: skip


class Scale:
    """From values to pixels, with round numbers to mark; it covers `least` even where all values are the same,
    and marks nothing above `most`.

    >>> Scale([0.2, 9.7], 0, 100, least=1, count=5).ticks
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    >>> Scale([99.6, 99.9], 0, 100, least=1, most=100).ticks[-1]
    100.0
    """

    def __init__(
        self,
        values: Iterable[float],
        start: float,
        end: float,
        *,
        least: float,
        count: int = 4,
        most: float = math.inf,
    ):
        values = list(values)
        low, high = min(values), max(values)
        step = _round_step(max(high - low, least) / count)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        last = max(last, first + math.ceil(least / step))
        if step * last > most >= high:
            last = math.ceil(most / step - 1e-9)
            first = min(first, last - math.ceil(least / step))
        self.ticks = [round(step * number, 10) for number in range(first, last + 1)]
        self._start, self._ratio = start, (end - start) / (self.ticks[-1] - self.ticks[0])

    def __call__(self, value: float) -> float:
        return self._start + (value - self.ticks[0]) * self._ratio


def curves_svg(curves: Sequence[Curve], name: str) -> Markup:
    """Accuracy against steps; few steps are drawn further apart than many."""
    counts = sorted({count for curve in curves for count in curve.mean})
    values = [value for curve in curves for value in curve.mean.values()]
    across, up = _wide_apart(counts), Scale(values, HEIGHT - BOTTOM, TOP, least=1, most=100)
    parts = [*_rules(up), *_axis_names("steps (logarithmic)", "accuracy, %")]
    parts += [_tick(x, str(count)) for count, x in _legible(across)]
    for place, curve in enumerate(curves):
        points = [(across[count], up(value)) for count, value in curve.mean.items()]
        owner = Markup('<g data-filter data-method="{}" data-checkpoint="{}">{}</g>')
        parts.append(owner.format(curve.line.facets["method"], curve.line.facets["checkpoint"], _line(points, place)))
    return _drawing(parts, f"Accuracy after each number of steps: {name}")


def _wide_apart(counts: Sequence[int]) -> dict[int, float]:
    """Step counts by the logarithm of one more, as zero is one of them."""
    first, last = math.log1p(counts[0]), math.log1p(counts[-1])
    room = WIDTH - LEFT - RIGHT - 16
    return {count: LEFT + 8 + (math.log1p(count) - first) / (last - first) * room for count in counts}


def _legible(across: dict[int, float], apart: float = 18) -> Iterable[tuple[int, float]]:
    """The counts whose numbers do not touch each other."""
    end = -math.inf
    for count, x in across.items():
        if x - end >= apart:
            yield count, x
            end = x


def drift_svg(drift: Drift) -> Markup:
    """Score before (hollow) and after (full) adaptation across, accuracy up; numbers are those of the table."""
    scores = drift.scores
    both = [value for score in scores for value in (score.before, score.after)]
    across = Scale(both, LEFT + 20, WIDTH - RIGHT - 20, least=0.01, count=3)
    up = Scale([score.accuracy for score in scores], HEIGHT - BOTTOM, TOP, least=1, most=100)
    parts = [*_rules(up), *_axis_names("shift score, 1 is like the source", "accuracy, %")]
    parts += [_tick(across(tick), f"{tick:g}") for tick in across.ticks]
    for number, score in enumerate(scores, start=1):
        before, after, y = across(score.before), across(score.after), up(score.accuracy)
        place = (min(before, after) - 6, "end") if number % 2 else (max(before, after) + 6, "start")  # neighbours apart
        told = f"{score.corruption}: {score.before:.3f} to {score.after:.3f}, accuracy {score.accuracy:.2f} %"
        parts += [
            Markup('<g class="score"><title>{}</title><path d="M{:.1f} {:.1f}H{:.1f}"/>').format(
                told, before, y, after
            ),
            Markup('<circle class="before" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(before, y),
            Markup('<circle class="after" cx="{:.1f}" cy="{:.1f}" r="3.5"/>').format(after, y),
            Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text></g>').format(
                place[0], y + 3.5, place[1], number
            ),
        ]
    return _drawing(parts, f"Shift score and accuracy of {drift.line.name}")


def swatch(place: int) -> Markup:
    """The look of a line, for a legend."""
    return Markup('<svg class="swatch" viewBox="0 0 36 14" aria-hidden="true">{}</svg>').format(
        _line([(2, 7), (18, 7), (34, 7)], place, marked=(1,))
    )


def _line(points: Sequence[tuple[float, float]], place: int, marked: Sequence[int] | None = None) -> Markup:
    colour, form = place % KINDS, (place + place // KINDS) % KINDS  # the seventh has the first colour, the second form
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    shown = points if marked is None else [points[number] for number in marked]
    marks = Markup("").join(
        Markup('<path class="mark" transform="translate({:.1f} {:.1f})" d="{}"/>').format(x, y, MARKERS[form])
        for x, y in shown
    )
    body = Markup('<path class="line" d="{}"/>{}').format(path, marks)
    return Markup('<g class="series series-{} dashes-{}">{}</g>').format(colour + 1, form + 1, body)


def _rules(up: Scale) -> Iterable[Markup]:
    for tick in up.ticks:
        y = up(tick)
        yield Markup('<path class="rule" d="M{} {:.1f}H{}"/>').format(LEFT, y, WIDTH - RIGHT)
        yield Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{:g}</text>').format(
            LEFT - 6, y + 3.5, tick
        )


def _tick(x: float, text: str) -> Markup:
    return Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
        x, HEIGHT - BOTTOM + 16, text
    )


def _axis_names(across: str, up: str) -> Iterable[Markup]:
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(middle, HEIGHT - 5, across)
    height = (TOP + HEIGHT - BOTTOM) / 2
    yield Markup('<text class="axis" transform="translate(11 {}) rotate(-90)" text-anchor="middle">{}</text>').format(
        height, up
    )


def _drawing(parts: Iterable[Markup], label: str) -> Markup:
    body = Markup("").join(parts)
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, label, body
    )


def _round_step(step: float) -> float:
    """The next of 1, 2, 5, 10, ..."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * 0.999)
