"""`ncttt train`: a classifier and its branch, by configuration file and overrides."""

import json as json_module
import sys
from typing import Any

from ncttt import training
from ncttt.training.job import Job

EXAMPLE = "ncttt train --config digits --out runs/digits --recipe.epochs 5"
GROUP = "train and adapt"


# Not `train`: jsonargparse would look for that in `ncttt`, where the loop of the training has the name, and load torch.
def train_(
    *,
    out: str,
    resume: bool = False,
    device: str = "cpu",
    threads: int | None = None,
    tensorboard: bool = False,
    json: bool = False,
    **job: Any,
) -> None:
    """Train a classifier and its auxiliary branch jointly; after a kill, --resume continues.

    Args:
        out: Folder for checkpoints, metrics, curves and results.
        resume: Continue where the run was stopped.
        device: cpu, cuda or cuda:N.
        threads: Number of processor threads; a resumed run is bit-exact with the same number.
        tensorboard: Write TensorBoard events into the run folder.
        json: Print the results as JSON, for scripts.
    """
    asked = Job(**job)
    where = {"resume": resume, "device": device, "threads": threads, "tensorboard": tensorboard}
    results = training.run_job(asked, out, **where, say=lambda line: print(f"ncttt: {line}", file=sys.stderr))
    if json and results:
        print(json_module.dumps(results))
    elif "test_accuracy" in results:
        print(f"{out}: test accuracy {results['test_accuracy']:.2%} after {results['minutes']} minutes of training")
