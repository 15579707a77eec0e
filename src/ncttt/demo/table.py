"""The table of the demonstration, from rows: one line a method, with what statistics and what steps gave."""

from __future__ import annotations

from collections.abc import Sequence

from ncttt.benchmark.table import Row
from ncttt.report.order import CLEAN, corruption_order, method_order, spelled
from ncttt.report.shares import shares
from ncttt.report.table import MISSING, average


def demo_table(rows: Sequence[Row], plain: str) -> tuple[list[str], list[list[str]]]:
    """Headers and cells as text, accuracies in percent; `plain` is the model that methods without a branch run on.

    A method with a model of its own has gained what it has over that very model, so its gains are not those over the
    first line.
    """
    corruptions = sorted({row["corruption"] for row in rows}, key=corruption_order)
    lines: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["method"] not in ("source", "ptbn") or row["checkpoint"] == plain:
            lines.setdefault(row["method"], {})[row["corruption"]] = 100 * row["accuracy"]
    shown = [name for name in corruptions if name != CLEAN]
    headers = ["method", *(spelled(name) for name in corruptions), "mean of shifts", "by statistics", "by steps"]
    gains: dict[str, tuple[float | None, float | None]] = {
        share.method: (share.statistics, share.steps) for share in shares(rows)
    }
    means = {method: average(found[name] for name in shown) for method, found in lines.items()}
    gains["ptbn"] = (means["ptbn"] - means["source"], None)
    body = [
        [
            method,
            *(f"{lines[method][name]:.1f}" for name in corruptions),
            f"{means[method]:.1f}",
            *(MISSING if gain is None else f"{gain:+.1f}" for gain in gains.get(method, (None, None))),
        ]
        for method in sorted(lines, key=method_order)
    ]
    return headers, body
