"""The table at the end of a grid: one line a method, mean accuracy over the corruptions, deviation over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ncttt.benchmark.attribution import Attribution
from ncttt.benchmark.statistics import Difference, mean_and_deviation
from ncttt.benchmark.table import Row
from ncttt.benchmark.tuning import TrialResult

NAMED = ("data", "split", "severity", "protocol", "order", "batch_size", "method", "checkpoint", "stop")
# Rows of one line differ in corruption and seed alone.
GROUP = (*NAMED, "constants", "settings", "weights", "images_digest", "threads", "device")


@dataclass(frozen=True)
class Line:
    """A method on a checkpoint: accuracy in percent, mean over corruptions, and its deviation over seeds."""

    name: dict[str, object]
    accuracy: float
    deviation: float | None
    ece: float
    images_per_second: float
    corruptions: int
    seeds: int


def summarise(rows: Sequence[Row]) -> list[Line]:
    """Rows put together, in the order in which their methods first come."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in GROUP), []).append(row)
    return [_line(dict(zip(GROUP, key, strict=True)), found) for key, found in groups.items()]


def _line(name: dict[str, object], rows: list[Row]) -> Line:
    seeds = sorted({row["seed"] for row in rows})
    each = [[row["accuracy"] for row in rows if row["seed"] == seed] for seed in seeds]
    mean, deviation = mean_and_deviation([100 * sum(found) / len(found) for found in each])
    return Line(
        name,
        mean,
        deviation,
        sum(row["ece"] for row in rows) / len(rows),
        sum(row["images_per_second"] for row in rows) / len(rows),
        len({row["corruption"] for row in rows}),
        len(seeds),
    )


def summary_table(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Headers and cells as text; what is the same in every line is left out."""
    shown = [key for key in NAMED if key in ("method", "checkpoint") or len({line.name[key] for line in lines}) > 1]
    headers = [*(key.replace("_", " ") for key in shown), "accuracy %", "ECE", "images/s", "corruptions", "seeds"]
    body = [
        [
            *("" if line.name[key] is None else str(line.name[key]) for key in shown),
            f"{line.accuracy:.2f}" + ("" if line.deviation is None else f" ± {line.deviation:.2f}"),
            f"{line.ece:.3f}",
            f"{line.images_per_second:.0f}",
            str(line.corruptions),
            str(line.seeds),
        ]
        for line in lines
    ]
    return headers, body


def attribution_table(found: Sequence[Attribution]) -> tuple[list[str], list[list[str]]]:
    """Headers and cells as text: accuracies of the five ways, and the shares of the gain with their intervals."""
    ways, subjects = list(found[0].accuracy), [asdict(line.subject) for line in found]
    fixed = ("method", "checkpoint", "protocol")
    shown = [name for name in subjects[0] if name in fixed or len({subject[name] for subject in subjects}) > 1]
    headers = [*(name.replace("_", " ") for name in shown), *ways, "statistics", "steps", "total"]
    body = [
        [
            *(str(subject[name]) for name in shown),
            *(f"{100 * line.accuracy[way]:.2f}" for way in ways),
            *(in_points(gain) for gain in (line.statistics, line.steps, line.total)),
        ]
        for subject, line in zip(subjects, found, strict=True)
    ]
    return headers, body


def search_table(found: Sequence[TrialResult], fresh: Sequence[TrialResult]) -> tuple[list[str], list[list[str]]]:
    """Headers and cells as text: settings, accuracy, gain over batch statistics; the same on fresh images."""
    again = {repr(result.trial.settings): result for result in fresh}
    headers = ["settings", "accuracy %", "gain of the steps", *(["on fresh images", "gain there"] if again else [])]
    body = []
    for result in found:
        settings = result.trial.settings
        line = [" ".join(f"{name}={value}" for name, value in settings.items()) or "as it is"]
        for measured in (result, again.get(repr(settings))):
            line += [f"{100 * measured.accuracy:.2f}", in_points(measured.gain)] if measured else ["", ""]
        body.append(line[: len(headers)])
    return headers, body


def in_points(gain: Difference) -> str:
    """A difference in percentage points with its interval.

    >>> in_points(Difference(0.021, 0.01, 0.032))
    '+2.10 [+1.00, +3.20]'
    """
    return f"{100 * gain.mean:+.2f} [{100 * gain.low:+.2f}, {100 * gain.high:+.2f}]"
