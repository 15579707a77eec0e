"""`ncttt bench`: a grid by configuration file, measured, kept as rows, put into a table."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ncttt import benchmark, report
from ncttt.base.errors import InputError
from ncttt.benchmark.entries import changed_entries
from ncttt.benchmark.grid import BLEND, Grid

STORE = "runs/bench.sqlite"
EXAMPLE = (
    "ncttt bench --data digits --methods tent,nc_ttt --corruptions clean,contrast --set tent.lr=1e-3",
    "ncttt bench --config digits --seeds 0,1 --store runs/bench.sqlite",
)
GROUP = "measure"


def bench(
    *,
    set: Sequence[str] = (),
    store: str = STORE,
    executor: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    cache: str | None = None,
    force: bool = False,
    attribution: bool = False,
    blend: str = BLEND,
    csv: str | None = None,
    json: bool = False,
    **grid: Any,
) -> None:
    """Measure methods on corrupted images, a row for each cell of a grid; after a kill, the same command continues.

    Args:
        set: Change a setting of a method, as in tent.lr=1e-3, or steps, stop, protocols or checkpoint of its entry; a
            label names its entry, too.
        store: File of the rows; cells that are in it are not measured again.
        executor: Where cells are measured: here, processes (of this machine) or ray.
        workers: Number of processes; default: cores / threads.
        address: Address of the Ray cluster, as in "auto"; by default a local one is started.
        cache: Folder for corrupted images; by default next to the store.
        force: Measure again what is in the store.
        attribution: Split the gain of each method that learns into the gain from batch statistics and the gain from the
            steps.
        blend: Blend of source and batch statistics that an attribution also shows.
        csv: Write the shares of an attribution to this file, a line for each method; rows are exported by `ncttt rows`.
        json: Print the rows, or the shares, as JSON for scripts.
    """
    if csv and not attribution:
        raise InputError("--csv is for the shares of an attribution; `ncttt rows export` writes rows")
    asked = Grid(**grid)
    asked = replace(asked, methods=changed_entries(asked.methods, set))
    running = {"executor": executor, "workers": workers, "address": address, "cache": cache, "force": force}
    with benchmark.Store(store) as rows:
        if attribution:
            outcome = benchmark.attribute(asked, rows, blend=blend, **running)
            _tell_shares(outcome.attributions, csv, json)
        else:
            outcome = benchmark.run_grid(asked, rows, **running)
            _tell_rows(outcome.rows, json)
    benchmark.raise_failures(outcome.failures)


def _tell_rows(rows: Sequence[dict[str, Any]], json: bool) -> None:
    if json:
        print(json_module.dumps(rows))
    elif rows:
        report.show(report.summary_table(rows))


def _tell_shares(shares: Sequence[benchmark.Attribution], csv: str | None, json: bool) -> None:
    if csv and shares:
        benchmark.write_attributions(shares, csv)
    if json:
        print(json_module.dumps(benchmark.attributions_json(shares)))
    elif shares:
        report.show(report.attribution_table(shares))
