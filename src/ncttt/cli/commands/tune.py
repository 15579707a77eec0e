"""`ncttt tune`: settings chosen on validation images, by grid or at random."""

import json as json_module
from typing import Any

from ncttt import benchmark, report
from ncttt.benchmark.tuning.config import Tuning

EXAMPLE = "ncttt tune --config digits --random 4 --out runs/tune"
GROUP = "measure"


def tune(
    *,
    out: str = "runs/tune",
    executor: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    top: int = 20,
    csv: str | None = None,
    json: bool = False,
    **tuning: Any,
) -> None:
    """Choose settings on held-out training images under the four extra corruptions; after a kill, it continues.

    Args:
        out: Folder for the rows and the trained models.
        executor: Where cells are measured: here, processes (of this machine) or ray.
        workers: Number of processes; default: cores / threads.
        address: Address of the Ray cluster, as in "auto"; by default a local one is started.
        top: Number of best trials to show.
        csv: Write all trials to this file, a line each.
        json: Print all trials as JSON, for scripts.
    """
    asked = Tuning(**tuning)
    result = benchmark.tune(asked, out, executor=executor, workers=workers, address=address)
    if csv:
        benchmark.write_trials(asked, result, csv)
    if json:
        trials = {"trials": result.trials, "confirmed": result.confirmed}
        shown = {name: benchmark.trials_json(each) for name, each in trials.items()}
        print(json_module.dumps({"exception": asked.exception, **shown}))
    elif result.trials:
        report.show(report.tuning_table(result.trials[:top], result.confirmed, asked.exception))
    benchmark.raise_failures(result.failures)
