"""`ncttt rows show`: what a store holds, on the screen."""

import json as json_module

from ncttt import benchmark, report

EXAMPLE = "ncttt rows show runs/bench.sqlite"


def show(store: str, *, json: bool = False) -> None:
    """Show the rows of a store, mean over corruptions, and the cells that failed.

    Args:
        store: File of the rows.
        json: Print the rows as JSON, for scripts.
    """
    with benchmark.Store.existing(store) as base:
        rows, failures = base.rows(), base.failures()
    if json:
        print(json_module.dumps(rows))
        return
    if rows:
        report.show(report.summary_table(rows))
    for failure in failures:
        cell = failure["cell"]
        print(f"failed: {cell['method']} on {cell['checkpoint']}, {cell['corruption']}: {failure['error']}")
