"""Folders of images sent to a service, and its predictions written as `ncttt adapt` writes its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ncttt.adapt.predictions import PREDICTIONS, TRACE, check_new
from ncttt.base.csv_files import Values, growing_csv
from ncttt.base.errors import InputError
from ncttt.base.files import check_place
from ncttt.base.progress import ProgressDisplay
from ncttt.base.signals import listening
from ncttt.serve.client import Client
from ncttt.serve.settings import STREAM

OF_TRACE = TRACE[3:]  # what the service tells of a batch, under the same names


def send_folders(
    url: str,
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    trace: str | None = None,
    stream: str = STREAM,
    token: str | None = None,
    batch_size: int | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Send the images of folders to a service, write its predictions and return counts of them.

    Files come sorted by name, a request for each batch, of at most 128 images by default; all folders are one stream of
    the service.
    """
    from ncttt.adapt.file_batches import file_batches
    from ncttt.data.planning import BATCH  # both need NumPy, which the help of the command line does without

    trace_file = trace or str(Path(out).with_suffix(".trace.csv"))
    if not overwrite:
        check_new(str(out), trace_file)
    folders = [images] if isinstance(images, str | Path) else images
    batches = file_batches(folders, BATCH if batch_size is None else batch_size, "given", 0)
    counts = {"images": 0, "batches": 0, "adapted_batches": 0, "stepped_batches": 0, "changed": 0, "collapses": 0}
    progress = ProgressDisplay("batches", len(batches), lines=False)
    with ExitStack() as stack:
        client = stack.enter_context(Client(url, token))
        for path in (Path(out), Path(trace_file)):
            check_place(path)
        predictions = stack.enter_context(growing_csv(out, PREDICTIONS))
        traces = stack.enter_context(growing_csv(trace_file, TRACE))
        request = stack.enter_context(listening())
        stack.enter_context(progress)
        for number, batch in enumerate(batches, 1):
            answer = client.predict(batch.files, stream, shift=True)
            if len(answer["predictions"]) != len(batch.files):
                raise InputError(f"{url} answered with {len(answer['predictions'])} of {len(batch.files)} predictions")
            predictions([_row(*pair, number) for pair in zip(batch.files, answer["predictions"], strict=True)])
            told = answer["batch"]
            beginning = (number, batch.folder, len(batch.files))
            traces([(*beginning, *(_short(told[name]) for name in OF_TRACE))])
            counts["images"] += len(batch.files)
            counts["batches"] += 1
            counts["adapted_batches"] += answer["outcome"] != "left to source"
            counts["stepped_batches"] += told["steps"] > 0
            counts["collapses"] += bool(told["collapsed"])
            counts["changed"] += sum(each["label"] != each["source_label"] for each in answer["predictions"])
            progress.advance()
            if request.signal is not None:
                request.obey()
    return counts | {"predictions": str(out), "trace": trace_file}


def _row(file: str, predicted: dict[str, Any], batch: int) -> Values:
    names = ("label", "probability", "source_label", "source_probability", "shift")
    return (file, *(_short(predicted[name]) for name in names), batch)


def _short(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float) else value
