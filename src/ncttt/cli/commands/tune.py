"""`ncttt tune`: settings chosen on validation images, by grid or at random."""

import json as json_module
import sys
from functools import cache
from pathlib import Path
from typing import Any

from ncttt.benchmark.search import Search


def tune(
    *,
    out: str = "runs/tune",
    executor: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    top: int = 20,
    csv: str | None = None,
    json: bool = False,
    **search: Any,
) -> None:
    """Choose settings on held-out training images: under the four extra corruptions; killed, it goes on.

    Args:
        out: Folder for the rows and for the models that are trained.
        executor: Where cells are measured: here, processes (of this machine) or ray.
        workers: Processes; by default as many as have a core for each of their threads.
        address: Of the Ray cluster, as in "auto"; by default a local one is started.
        top: Show so many of the best.
        csv: Write all trials to this file, a line each.
        json: Print all trials as JSON, for scripts.
    """
    from ncttt.base.files import replace_file
    from ncttt.benchmark.driver import run_cells
    from ncttt.benchmark.executors import executor as executor_of
    from ncttt.benchmark.search_checks import check_search
    from ncttt.benchmark.store import Store
    from ncttt.benchmark.tuned_models import changed, train_once
    from ncttt.benchmark.tuning import cells_of_trials, ranked, trials
    from ncttt.benchmark.watching import watcher
    from ncttt.cli.bench_output import complain, search_as_csv, search_as_json
    from ncttt.cli.training_config import read_job
    from ncttt.report import show, tuning_table

    asked = Search(**search)
    job = None if asked.train is None else read_job(asked.train)
    check_search(asked, job)

    @cache
    def checkpoint_for(settings: str) -> str:
        if job is None:
            assert asked.checkpoint is not None
            return asked.checkpoint
        print(f"model with {settings}", file=sys.stderr, flush=True)
        chosen = json_module.loads(settings) | {"data": asked.data, "root": asked.root}
        return train_once(changed(job, chosen), out, asked.device)

    def checkpoint_of(settings: dict[str, Any]) -> str:
        return checkpoint_for(json_module.dumps(settings))

    runs_on = executor_of(executor, asked.threads, workers, address, asked.device)
    with Store(Path(out) / "trials.sqlite") as store:
        chosen = trials(asked, checkpoint_of)
        failures = run_cells(cells_of_trials(chosen), store, runs_on, predictions=True, watcher=watcher()).failures
        found, fresh = ranked(chosen, store), []
        if asked.confirm:
            best = [result.trial.settings for result in found[: asked.confirm]]
            again = [trial for trial in trials(asked, checkpoint_of, fresh=True) if trial.settings in best]
            failures += run_cells(cells_of_trials(again), store, runs_on, predictions=True, watcher=watcher()).failures
            fresh = ranked(again, store)
    if csv:
        replace_file(Path(csv), search_as_csv(asked, found, fresh))
    if json:
        print(json_module.dumps({"searched": search_as_json(found), "confirmed": search_as_json(fresh)}))
    elif found:
        show(tuning_table(found[:top], fresh))
    complain(failures)
