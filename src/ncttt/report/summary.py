"""The summary of rows: one line a method, mean accuracy over the corruptions, deviation over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncttt.report.table import Cell, Number, Table, average, over_seeds, table_of

Row = Mapping[str, Any]
NAMED = ("data", "split", "severity", "protocol", "order", "batch_size", "method", "checkpoint", "stop")
ALWAYS = ("method", "checkpoint")  # shown even where they are the same in every line
# Rows of one line differ in corruption and seed alone.
GROUP = (*NAMED, "constants", "settings", "weights", "images_digest", "pictures", "threads", "device")


def summary_table(rows: Sequence[Row]) -> Table:
    """Rows put together, in the order in which their methods first come; what is the same in all lines is left out."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in GROUP), []).append(row)
    firsts = [group[0] for group in groups.values()]
    shown = [name for name in NAMED if name in ALWAYS or len({row[name] for row in firsts}) > 1]
    headers = [*(name.replace("_", " ") for name in shown), "accuracy %", "ECE", "images/s", "corruptions", "seeds"]
    names = [["" if row[name] is None else str(row[name]) for name in shown] for row in firsts]
    return table_of(headers, [[*name, *_means(group)] for name, group in zip(names, groups.values(), strict=True)])


def _means(rows: Sequence[Row]) -> list[Cell]:
    seeds = sorted({row["seed"] for row in rows})
    corruptions = {row["corruption"] for row in rows}
    return [
        over_seeds([100 * average(row["accuracy"] for row in rows if row["seed"] == seed) for seed in seeds]),
        Number(average(row["ece"] for row in rows), decimals=3),
        Number(average(row["images_per_second"] for row in rows), decimals=0),
        Number(len(corruptions), decimals=0),
        Number(len(seeds), decimals=0),
    ]
