"""`ncttt adapt`: predictions for folders of unlabelled images, with adaptation to them and without."""

import json as json_module
import sys
from pathlib import Path
from typing import Any, Literal

EXAMPLE = "ncttt adapt --model digits-small-ncttt --images photos --out predictions.csv"
GROUP = "train and adapt"


def adapt(
    *,
    model: str,
    images: tuple[str, ...],
    out: str,
    trace: str | None = None,
    method: str | None = None,
    settings: dict[str, Any] | None = None,
    protocol: str = "episodic",
    batch_size: int = 128,
    stop: Literal["source", "none"] = "source",
    steps: int | None = None,
    lr: float | None = None,
    shuffle: bool = False,
    skip_bad: bool = False,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
    json: bool = False,
) -> None:
    """Adapt a model to folders of images and write its predictions; interrupted, it keeps those that it has made.

    Args:
        model: Zoo name or folder of the model.
        images: Folders of images, one or several, in the order of the stream; subfolders are looked into.
        out: CSV file for the predictions, a row for each image.
        trace: CSV file for what was done, a row for each batch; by default beside out, as NAME.trace.csv.
        method: Name of the method; by default the one that the model was trained for.
        settings: Settings of the method, as JSON, in place of the model's own.
        protocol: episodic forgets after each batch, online at each new folder, continual never.
        batch_size: Most images to adapt to at a time; a folder is divided evenly.
        stop: source leaves batches that look like the source's to the model as it was trained; none adapts to all.
        steps: Adaptation steps, in place of the method's own.
        lr: Learning rate, in place of the method's own.
        shuffle: Shuffle the images of each folder; for files that are sorted by class.
        skip_bad: Leave out image files that cannot be read instead of stopping at the first.
        seed: Of the shuffling and of the adaptation.
        device: cpu, cuda or cuda:N.
        threads: Threads of the processor; by default one for each core.
        json: Print the summary as JSON, for scripts.
    """
    import torch

    from ncttt.adapt import FolderStream, Tally
    from ncttt.base.devices import available
    from ncttt.cli.adapt_output import check_calibrated, plain_warnings, show, written
    from ncttt.methods.settings import method_for
    from ncttt.zoo.checkpoint import load

    if threads is not None:
        torch.set_num_threads(threads)
    loaded = load(model).to(available(device))
    chosen = method_for(loaded.method, method, settings)
    if stop == "source":
        check_calibrated(loaded, model)
    with plain_warnings():
        stream = FolderStream(
            loaded,
            images,
            chosen,
            batch_size=batch_size,
            protocol=protocol,  # type: ignore[arg-type]
            stop="source" if stop == "source" else None,
            steps=steps,
            lr=lr,
            shuffle=shuffle,
            skip_bad=skip_bad,
            seed=seed,
        )
        beside = trace or str(Path(out).with_suffix(".trace.csv"))
        tally = Tally(loaded)
        written(stream, tally, out, beside)
    facts = tally.facts() | {"unreadable": stream.images - tally.images, "predictions": out, "trace": beside}
    if json:
        print(json_module.dumps(facts))
    else:
        show(facts, file=sys.stdout)
