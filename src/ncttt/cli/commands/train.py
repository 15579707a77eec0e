"""`ncttt train`: a classifier and its branch, by configuration file and overrides."""

import json as json_module
import sys
from typing import Any

from ncttt.training.recipe import Recipe

DEFAULTS = Recipe()


def train_command(
    *,
    data: str,
    out: str,
    root: str | None = None,
    split: str = "fit",
    held_out: str | None = "val",
    test: str | None = "test",
    image_size: int = 224,
    train_size: int | None = None,
    mean: list[float] | None = None,
    std: list[float] | None = None,
    network: str = "small",
    network_settings: dict[str, Any] | None = None,
    start: str | None = None,
    whiten: bool = False,
    layer: str | list[str] = "layer4",
    method: str = "nc_ttt",
    method_settings: dict[str, Any] | None = None,
    recipe: Recipe = DEFAULTS,
    resume: bool = False,
    device: str = "cpu",
    threads: int | None = None,
    tensorboard: bool = False,
    json: bool = False,
) -> None:
    """Train a classifier and its auxiliary branch jointly; killed, it goes on with --resume.

    Args:
        data: Data set by name, or a folder of images with a subfolder for each class.
        out: Folder for checkpoints, metrics, curves and results.
        root: Where data sets lie.
        split: Part that is learned from.
        held_out: Part of the training images that is evaluated after every epoch and calibrates the method.
        test: Part that scores the finished model, and nothing else.
        image_size: Size to which photographs are brought.
        train_size: Size of those to learn from, where the augmentation cuts windows out of them.
        mean: Per channel, of the input's normalisation.
        std: Per channel, of the input's normalisation.
        network: Name of the network.
        network_settings: Its settings, such as a width.
        start: Zoo name, checkpoint folder or file of weights to start from.
        whiten: Begin the first convolution with filters that whiten the training images; from scratch only.
        layer: Layer or layers that the branch reads.
        method: Name of the method.
        method_settings: Its settings.
        recipe: How to train.
        resume: Go on where the run was stopped.
        device: cpu, cuda or cuda:N.
        threads: Of the processor; a resumed run is bit-exact with the same number.
        tensorboard: Write TensorBoard events into the run folder.
        json: Print the results as JSON, for scripts.
    """
    import torch

    from ncttt.training.job import Job, run_job
    from ncttt.training.processes import place, process_group
    from ncttt.training.run import Run
    from ncttt.training.watching import TensorBoard, watcher

    if threads is not None:
        torch.set_num_threads(threads)
    job = Job(
        data=data,
        root=root,
        split=split,
        held_out=held_out,
        test=test,
        image_size=image_size,
        train_size=train_size,
        mean=mean,
        std=std,
        network=network,
        network_settings=network_settings or {},
        start=start,
        whiten=whiten,
        layer=layer,
        method=method,
        method_settings=method_settings or {},
        recipe=recipe,
    )
    with process_group(device) as device:
        first = place().first
        if first and resume and not Run(out).begun:
            print(f"ncttt: nothing to resume in {out}; beginning", file=sys.stderr)
        observers = [watcher(), *([TensorBoard(out)] if tensorboard and first else [])]
        try:
            results = run_job(job, out, resume=resume, device=device, observers=observers)
        except (SystemExit, KeyboardInterrupt):
            if first and Run(out).begun:
                print("ncttt: stopped; go on with --resume", file=sys.stderr)
            raise
    if first and json:
        print(json_module.dumps(results))
    elif first and "test_accuracy" in results:
        print(f"{out}: test accuracy {results['test_accuracy']:.2%} after {results['minutes']} minutes of training")
