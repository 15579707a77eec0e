"""Two methods on the same images: how far apart they are, corruption by corruption, and whether that is significant.

Intervals are those of `ncttt.benchmark.paired_difference`: a bootstrap over batches, or over blocks of a stream that
remembers. The marks of single corruptions are not corrected for how many there are; the overall one is a single test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncttt.adapt.protocols import PROTOCOLS
from ncttt.base.errors import InputError
from ncttt.data.corruptions import CLEAN
from ncttt.report.accuracy import is_mixed
from ncttt.report.names import column_of, corruption_order, named_columns, spelled
from ncttt.report.pairs import Pair, pairs_of
from ncttt.report.table import Line, Number, Table, average, in_points

if TYPE_CHECKING:
    import numpy as np

    from ncttt.benchmark.intervals import Difference
    from ncttt.benchmark.store import Store

Streams = list[tuple[Any, "np.ndarray", "np.ndarray"]]  # seed, and what was right with each method


@dataclass(frozen=True)
class Compared:
    """Accuracies of two methods from 0 to 1 and their paired difference."""

    first: float
    second: float
    difference: Difference


@dataclass(frozen=True)
class Comparison:
    """Two methods, compared on each corruption and over all; clean images count in `overall` only if they are alone."""

    first: str
    second: str
    title: str
    each: dict[str, Compared]
    overall: Compared


def compare(
    store: Store,
    first: str,
    second: str,
    *,
    checkpoint: str | None = None,
    other_checkpoint: str | None = None,
    **where: Any,
) -> Comparison:
    """Compare two methods by their labels, on the same images in the same order.

    `checkpoint` is needed where a method ran on several, `other_checkpoint` where the second ran on another than the
    first. `where` chooses rows by their columns, such as `severity=5, protocol="online"`; several seeds count together.
    """
    pairs = pairs_of(store, (first, checkpoint), (second, other_checkpoint or checkpoint), where)
    size, remembers = pairs[0].first["batch_size"], _remembers(pairs[0].first["protocol"])
    streams: dict[str, Streams] = {}
    for pair in pairs:
        for corruption, *right in _right(store, pair):
            streams.setdefault(corruption, []).append((pair.first["seed"], right[0], right[1]))
    sorted_streams = sorted(streams.items(), key=lambda item: corruption_order(item[0]))
    shifts = [corruption for corruption in streams if corruption != CLEAN] or [CLEAN]
    names = named_columns(column_of(row) for row in pairs[0])
    return Comparison(
        names[column_of(pairs[0].first)],
        names[column_of(pairs[0].second)],
        _title(pairs),
        {corruption: _compared(each, size, remembers) for corruption, each in sorted_streams},
        _compared([stream for corruption in shifts for stream in streams[corruption]], size, remembers),
    )


def comparison_table(comparison: Comparison) -> Table:
    """A comparison as a table: both accuracies, the difference with its interval, a star where that leaves out zero."""
    shifts = [corruption for corruption in comparison.each if corruption != CLEAN]
    return Table(
        comparison.title,
        "Corruption",
        (comparison.first, comparison.second, "difference"),
        tuple(Line(spelled(name), _numbers(compared)) for name, compared in comparison.each.items()),
        Line(f"Mean of {len(shifts)}", _numbers(comparison.overall)) if len(shifts) > 1 else None,
        notes=(
            "In brackets 95 % intervals of the paired difference; * marks those that leave out zero. "
            "Marks of single corruptions are not corrected for how many there are.",
        ),
    )


def _numbers(compared: Compared) -> tuple[Number, ...]:
    difference = in_points(compared.difference, star=bool(compared.difference.significant))
    return Number(100 * compared.first), Number(100 * compared.second), difference


def _compared(streams: Streams, batch_size: int, remembers: bool) -> Compared:
    # scipy, which tables of rows do without; a caller with a store has waited for it already
    from ncttt.benchmark.intervals import mean_difference, paired_difference

    differences = []
    for wanted in dict.fromkeys(seed for seed, *_ in streams):  # seeds show the same images: each counts by itself
        one, two = ([stream[side] for stream in streams if stream[0] == wanted] for side in (1, 2))
        differences.append(paired_difference(one, two, batch_size, remembers=remembers))
    first, second = (_accuracy([stream[side] for stream in streams]) for side in (1, 2))
    return Compared(first, second, mean_difference(differences))


def _accuracy(streams: Sequence[np.ndarray]) -> float:
    return average(float(right.mean()) for right in streams)


def _right(store: Store, pair: Pair) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
    """What was right of each corruption; a mixed stream is one: the store does not know whose image is whose."""
    first, second = (_last(store, row, store.right) for row in (pair.first, pair.second))
    predicted, other = (_last(store, row, store.predicted) for row in (pair.first, pair.second))
    if len(first) != len(second) or (predicted != other)[first & second].any():
        raise InputError(
            f"{pair.first['method']} and {pair.second['method']} did not see the same images of "
            f"{pair.first['corruption']}: where both are right, their classes differ"
        )
    names = [pair.first["corruption"]] if is_mixed(pair.first) else pair.first["corruption"].split("+")
    parts = (right.reshape(len(names), -1) for right in (first, second))
    yield from zip(names, *parts, strict=True)


def _last(store: Store, row: dict[str, Any], read: Any) -> np.ndarray:
    after_each = read(row["key"])
    if after_each is None:
        raise InputError(
            f"{store.path} has no predictions of {row['method']} on {row['corruption']}, as rows from a CSV have none; "
            "measure it with --force"
        )
    return after_each[-1]


def _title(pairs: Sequence[Pair]) -> str:
    first, second = pairs[-1]  # clean images, which have no severity, come first
    words = [
        f"{name.replace('_', ' ')} {first[name]}" for name in ("severity", "protocol", "batch_size") if first[name]
    ]
    names = [first["checkpoint"], second["checkpoint"]]
    models = f"both on {names[0]}" if names[0] == names[1] else f"on {names[0]} and {names[1]}"
    return ", ".join([f"Accuracy (%) on {first['data']}", *words, models])


def _remembers(protocol: str) -> bool:
    """Whether batches depend on those before; a protocol that is not known here may do anything."""
    return protocol not in list(PROTOCOLS) or PROTOCOLS[protocol].remembers
