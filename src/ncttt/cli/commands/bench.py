"""`ncttt bench`: a grid by configuration file, measured, kept as rows, put into a table."""

import json as json_module
from pathlib import Path
from typing import Any

from ncttt.benchmark.grid import BLEND, Grid

STORE = "runs/bench.sqlite"


def bench(
    *,
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
    """Measure methods on corrupted images, a row for each cell of a grid; killed, it goes on where it was.

    Args:
        store: File of the rows; cells that are in it are not measured again.
        executor: Where cells are measured: here, processes (of this machine) or ray.
        workers: Processes; by default as many as have a core for each of their threads.
        address: Of the Ray cluster, as in "auto"; by default a local one is started.
        cache: Folder for corrupted images; by default beside the store.
        force: Measure again what is in the store.
        attribution: Divide the gain of each method that learns into what statistics and what gradient gave.
        blend: The blend of source and batch statistics that an attribution shows beside them.
        csv: Write the shares of an attribution to this file, a line for each method; rows are exported by `ncttt rows`.
        json: Print the rows, or the shares, as JSON for scripts.
    """
    from ncttt.base.errors import InputError
    from ncttt.base.files import replace_file
    from ncttt.benchmark.attribution import attribute, plans, unique_cells
    from ncttt.benchmark.cells import cells_of
    from ncttt.benchmark.driver import run_cells
    from ncttt.benchmark.executors import executor as executor_of
    from ncttt.benchmark.store import Store
    from ncttt.benchmark.watching import watcher
    from ncttt.cli.bench_output import as_csv, as_json, complain
    from ncttt.report import attribution_table, show, summary_table

    asked = Grid(**grid)
    if csv and not attribution:
        raise InputError("--csv is for the shares of an attribution; `ncttt rows export` writes rows")
    planned = plans(asked, blend) if attribution else []
    cells = unique_cells(planned) if attribution else cells_of(asked)
    runs_on = executor_of(executor, asked.threads, workers, address, asked.device)
    with Store(store) as rows:
        outcome = run_cells(cells, rows, runs_on, force=force, predictions=attribution, cache=cache, watcher=watcher())
        failed = {cell.key for cell, _ in outcome.failures}
        whole = [plan for plan in planned if failed.isdisjoint(cell.key for cell in plan.cells())]
        shares = [attribute(plan, rows) for plan in whole]
    if csv and shares:
        replace_file(Path(csv), as_csv(shares))
    if json:
        print(json_module.dumps(as_json(shares) if attribution else outcome.rows))
    elif attribution and shares:
        show(attribution_table(shares))
    elif not attribution and outcome.rows:
        show(summary_table(outcome.rows))
    complain(outcome.failures)
