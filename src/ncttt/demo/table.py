"""The table of the demonstration, from rows: one line a method, with what statistics and what steps gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncttt.data.corruptions import CLEAN
from ncttt.report.names import corruption_order, method_order, spelled
from ncttt.report.shares import shares_of_rows
from ncttt.report.table import Number, Table, average, table_of

Gains = tuple[float | None, float | None]


def demo_table(rows: Sequence[Mapping[str, Any]], plain: str) -> Table:
    """Accuracies in percent; `plain` is the model that methods without a branch run on.

    A method with a model of its own has gained what it has over that very model, so its gains are not those over the
    first line.
    """
    corruptions = sorted({row["corruption"] for row in rows}, key=corruption_order)
    accuracy: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["method"] not in ("source", "ptbn") or row["checkpoint"] == plain:
            accuracy.setdefault(row["method"], {})[row["corruption"]] = 100 * row["accuracy"]
    means = {method: average(each[name] for name in corruptions if name != CLEAN) for method, each in accuracy.items()}
    gains: dict[str, Gains] = {share.method: (share.statistics, share.steps) for share in shares_of_rows(rows)}
    gains["ptbn"] = (means["ptbn"] - means["source"], None)
    headers = ["method", *map(spelled, corruptions), "mean of shifts", "statistics", "steps"]
    body = [
        [
            method,
            *(Number(accuracy[method][name], decimals=1) for name in corruptions),
            Number(means[method], decimals=1),
            *(
                None if gain is None else Number(gain, signed=True, decimals=1)
                for gain in gains.get(method, (None, None))
            ),
        ]
        for method in sorted(accuracy, key=method_order)
    ]
    return table_of(headers, body)
