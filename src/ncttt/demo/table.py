"""The table of the demonstration: every method, what it gained, where the gain comes from, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncttt.data.corruptions import CLEAN
from ncttt.report.names import method_order, spelled, spelled_method
from ncttt.report.shares import shares_of_rows
from ncttt.report.table import Cell, Number, Table, average, table_of

FROZEN = "frozen"  # what the table calls the method `source`
Rows = Sequence[Mapping[str, Any]]

# Lines of at most 80 characters, so that no terminal wraps them.
EXPLAINED = {
    "method": "frozen: as trained, without adaptation; PTBN: batch statistics",
    "Clean, ...": "accuracy in percent on {images} images each, batches of {batch}, no labels",
    "mean": "accuracy over the three shifts, without the clean images",
    "gain": "points of the mean over the same model without adaptation",
    "by statistics": "the part of the gain that comes from batch statistics",
    "by steps": "the part that comes from the method's own steps",
    "time": "per image; the frozen classifier is 1 x, all timed in turns",
}


def demo_table(rows: Rows, plain: str, times: Mapping[str, float] | None = None) -> Table:
    """A line for each method; `plain` is the model that methods without a branch run on, `times` their cost.

    A method with a model of its own has gained what it has over that very model, so its gain is not that over the first
    line.
    """
    corruptions = list(dict.fromkeys(row["corruption"] for row in rows))  # in the order of the stream
    accuracy = accuracies(rows, plain)
    headers = ["method", *map(spelled, corruptions), "mean", "gain", "by statistics", "by steps", "time"]
    body = []
    for method, each in accuracy.items():
        numbers = [Number(each[name], decimals=1) for name in corruptions]
        mean, gains = Number(shift_mean(each), decimals=1), _gains(method, accuracy, rows)
        body.append([shown_name(method), *numbers, mean, *gains, _time(times, method)])
    return table_of(headers, body)


def explained(rows: Rows) -> str:
    """What each column means, a line each."""
    about = {"images": rows[0]["images"], "batch": rows[0]["batch_size"]}
    return "\n".join(f"{name:14}{text.format(**about)}" for name, text in EXPLAINED.items())


def accuracies(rows: Rows, plain: str) -> dict[str, dict[str, float]]:
    """Percent by method, in the order of tables, and corruption; of source and PTBN those on the plain model."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["method"] not in ("source", "ptbn") or row["checkpoint"] == plain:
            found.setdefault(row["method"], {})[row["corruption"]] = 100 * row["accuracy"]
    return {method: found[method] for method in sorted(found, key=method_order)}


def shift_mean(each: Mapping[str, float]) -> float:
    """The mean over what is not clean."""
    return average(value for name, value in each.items() if name != CLEAN)


def shown_name(method: str) -> str:
    """What the table calls a method.

    >>> shown_name("source"), shown_name("nc_ttt")
    ('frozen', 'NC-TTT')
    """
    return FROZEN if method == "source" else spelled_method(method)


def _gains(method: str, accuracy: Mapping[str, Mapping[str, float]], rows: Rows) -> list[Cell]:
    """The gain, and its parts by statistics and by steps."""
    share = next((share for share in shares_of_rows(rows) if share.method == method), None)
    if method == "source":
        return [None, None, None]
    if share is not None:
        return [_points(share.statistics + share.steps), _points(share.statistics), _points(share.steps)]
    gain = shift_mean(accuracy[method]) - shift_mean(accuracy["source"])
    return [_points(gain), _points(gain) if method == "ptbn" else None, None]


def _points(gain: float) -> Number:
    return Number(gain, signed=True, decimals=1)


def _time(times: Mapping[str, float] | None, method: str) -> str | None:
    if times is None or method not in times:
        return None
    return f"{times[method]:.1f} x" if times[method] < 9.95 else f"{times[method]:.0f} x"
