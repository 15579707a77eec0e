"""The study's rows as its tables need them: who ran on which checkpoint, accuracies, paired comparisons."""

import csv
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ncttt.base import csv_files
from ncttt.benchmark import Store, read_rows
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.report import Number, compare
from ncttt.report.paper.rows import AVERAGE, find
from ncttt.report.table import average

RESULTS = Path("results")
ROWS = RESULTS / "cifar10c_severity5.csv"
COMPARISONS = RESULTS / "comparisons.csv"
PLAIN, NOISE = "cifar10-small-source", "cifar10-small-ncttt"
Run = tuple[str, str]  # the label of a method, and its checkpoint
Row = dict[str, Any]
# What tables call a method, and its run on the checkpoint of its own.
OWN: dict[str, Run] = {
    "Source": ("source", PLAIN),
    "LAME-L": ("lame linear", PLAIN),
    "LAME-K": ("lame knn", PLAIN),
    "LAME-R": ("lame rbf", PLAIN),
    "PTBN": ("ptbn", PLAIN),
    "TENT": ("tent", PLAIN),
    "TTT": ("ttt", "cifar10-small-ttt"),
    "TTT++": ("ttt_plus", "cifar10-small-ttt-plus"),
    "ClusT3": ("clust3", "cifar10-small-clust3"),
    "TTTFlow": ("ttt_flow", "cifar10-small-ttt-flow"),
    "NC-TTT": ("nc_ttt", NOISE),
}
LEARN = ("TENT", "TTT", "TTT++", "ClusT3", "TTTFlow", "NC-TTT")
NO_BRANCH = ("Source", "LAME-L", "LAME-K", "LAME-R", "PTBN", "TENT")
# On NC-TTT's checkpoint: its two losses one by one, TENT as it is, and NC-TTT that may leave a batch alone.
CONTROLS: dict[str, Run] = {
    "NC-TTT": ("nc_ttt", NOISE),
    "its discriminator alone": ("nc_ttt without entropy", NOISE),
    "its discriminator alone, two steps": ("nc_ttt without entropy in two steps", NOISE),
    "its entropy alone": ("entropy likewise", NOISE),
    "TENT": ("tent", NOISE),
    "NC-TTT that stops": ("nc_ttt that stops", NOISE),
}
PROTOCOLS = ("episodic", "online")


def comparisons(store: Store) -> Iterator[Row]:
    """NC-TTT against all others, and of every method that learns what statistics and what steps gave."""
    ours = OWN["NC-TTT"]
    pairs = [(ours, other) for other in (*OWN.values(), *CONTROLS.values()) if other != ours]
    for own in (*(OWN[name] for name in LEARN), *CONTROLS.values()):
        pairs += [(own, ("ptbn", own[1])), (own, ("source", own[1])), (("ptbn", own[1]), ("source", own[1]))]
    for protocol in PROTOCOLS:
        there = {(row["method"], row["checkpoint"]) for row in store.rows(protocol=protocol)}
        for first, second in dict.fromkeys(pairs):
            if {first, second} <= there:
                yield from _compared(store, first, second, protocol)


def _compared(store: Store, first: Run, second: Run, protocol: str) -> Iterator[Row]:
    comparison = compare(store, first[0], second[0], checkpoint=first[1], other_checkpoint=second[1], protocol=protocol)
    for corruption, one in [*comparison.each.items(), ("mean", comparison.overall)]:
        yield {
            **_pair(first, second, protocol, corruption),
            "first_accuracy": one.first,
            "second_accuracy": one.second,
            "difference": one.difference.mean,
            "low": one.difference.low,
            "high": one.difference.high,
        }


def _pair(first: Run, second: Run, protocol: str, corruption: str) -> dict[str, str]:
    names = ("first", "first_checkpoint", "second", "second_checkpoint")
    return {"protocol": protocol, **dict(zip(names, (*first, *second), strict=True)), "corruption": corruption}


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    lines = list(rows)
    csv_files.write_csv(path, list(lines[0]), [list(line.values()) for line in lines])


@cache
def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@cache
def measured(path: Path) -> list[Row]:
    return read_rows(path)


def accuracy(run: Run, protocol: str, corruption: str) -> Number | None:
    """Of a method on a checkpoint, in percent; `mean` is that over the corruptions; None if it was not measured."""
    asked = CORRUPTIONS if corruption == "mean" else (corruption,)
    accuracies = [
        100 * row["accuracy"]
        for row in measured(ROWS)
        if (row["method"], row["checkpoint"], row["protocol"]) == (*run, protocol) and row["corruption"] in asked
    ]
    return Number(average(accuracies)) if len(accuracies) == len(asked) else None


def paper(label: str, corruption: str = AVERAGE) -> Number | None:
    """What the paper has, None for a method or corruption that it lacks."""
    row = find("cifar10", 5, corruption, label)
    return row and Number(row.accuracy)


def gain(row: Row) -> Number:
    """A difference with its interval, in points, and a star if that leaves out zero."""
    mean, low, high = (100 * float(row[name]) for name in ("difference", "low", "high"))
    return Number(mean, interval=(low, high), signed=True, star=low > 0 or high < 0)


def compared(first: Run, second: Run, protocol: str, corruption: str = "mean") -> Number | None:
    """What was found for two methods, None if they were not compared."""
    asked = _pair(first, second, protocol, corruption)
    rows = [row for row in read(COMPARISONS) if asked.items() <= row.items()]
    return gain(rows[0]) if rows else None


def of_steps(run: Run, protocol: str, corruption: str = "mean") -> Number | None:
    """What a method gives over batch statistics on its checkpoint."""
    return compared(run, ("ptbn", run[1]), protocol, corruption)
