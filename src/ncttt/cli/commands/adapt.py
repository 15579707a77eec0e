"""`ncttt adapt`: predictions for folders of unlabelled images, with adaptation to them and without."""

import inspect
import json as json_module
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from ncttt import serve
from ncttt.adapt import adapt_folders
from ncttt.base.errors import InputError
from ncttt.base.words import counted
from ncttt.serve.settings import STREAM

EXAMPLE = (
    "ncttt adapt --model digits-small-ncttt --images photos --out predictions.csv",
    "ncttt adapt --url http://127.0.0.1:8000 --stream door-2 --images photos --out predictions.csv",
)
SENT = ("batch_size", "overwrite")  # options that mean the same where a service adapts
GROUP = "train and adapt"


def adapt(
    *,
    images: tuple[str, ...],
    out: str,
    model: str | None = None,
    url: str | None = None,
    stream: str = STREAM,
    trace: str | None = None,
    json: bool = False,
    **options: Any,
) -> None:
    """Adapt a model to folders of images and write its predictions; an interrupted run keeps those that are written.

    Args:
        model: Zoo name or folder of the model; this or a url is needed.
        url: Address of a service (ncttt serve) that adapts instead, with its own model and settings; its token is that
            of the environment variable NCTTT_TOKEN.
        stream: Stream of the service that the images belong to.
        images: Folders of images, or image files, one or several, in the order of the stream; folders are read at any
            depth.
        out: CSV file for the predictions, a row for each image.
        trace: CSV file for the trace, a row for each batch; by default NAME.trace.csv next to the predictions.
        json: Print the summary as JSON, for scripts.
    """
    if (model is None) == (url is None):
        raise InputError(f"adapt needs --model or --url, one of them; found {'none' if url is None else 'both'}")
    if model is not None:
        facts = adapt_folders(model, images, out, trace=trace, **options)
    else:
        assert url is not None
        sent = {name: options[name] for name in SENT}
        _check_sent(options)
        token = os.environ.get("NCTTT_TOKEN") or None
        facts = serve.send_folders(url, images, out, trace=trace, stream=stream, token=token, **sent)
    if json:
        print(json_module.dumps(facts))
    else:
        _show(facts, file=sys.stdout)


def _check_sent(options: dict[str, Any]) -> None:
    """Refuse options that a service has chosen already."""
    defaults = inspect.signature(adapt_folders).parameters
    chosen = [name for name, value in options.items() if name not in SENT and value != defaults[name].default]
    if chosen:
        option = f"--{chosen[0].replace('_', '-')}"
        raise InputError(f"{option} is a setting of the service that --url names; give it to ncttt serve")


def _show(facts: dict[str, Any], file: TextIO) -> None:
    """The summary: a table on a terminal, a line for each figure elsewhere."""
    lines = list(_lines(facts))
    if not file.isatty():
        for name, text in lines:
            print(f"{name}: {text}", file=file)
        return
    # rich takes a tenth of a second to import, which a command whose output is piped need not wait for.
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    for line in lines:
        table.add_row(*line)
    Console(file=file).print(table)


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    batches = counted(facts["batches"], "batch", "batches")
    yield "images", f"{facts['images']} in {batches}{_counted(facts.get('unreadable', 0), 'left out')}"
    adapted = f"{facts['adapted_batches']} of {batches}, {facts['stepped_batches']} by steps"
    fell_back = _counted(facts.get("fallbacks", 0), "fell back because something was not finite")
    yield "adapted", adapted + fell_back + _counted(facts["collapses"], "collapsed")
    yield "changed", f"{counted(facts['changed'], 'prediction')}, {facts['changed'] / facts['images']:.1%}"
    if "confidence" in facts:
        yield from _certainty(facts)
    yield "predictions", facts["predictions"]
    yield "trace", facts["trace"]


def _certainty(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What only the model itself can tell."""
    yield "confidence", f"{facts['confidence']:.3f}{_source(facts['source_confidence'])}"
    if facts["evidence_in_spreads"] is not None:
        yield "evidence", f"{facts['evidence_in_spreads']:+.2f} spreads from source images"
    if facts["shift"] is not None:
        yield "shift score", f"{facts['shift']:.3f}{_source(facts['source_shift'])}"
    yield "advice", facts["advice"]


def _counted(count: int, what: str) -> str:
    return f"; {count} {what}" if count else ""


def _source(value: float | None) -> str:
    return "" if value is None else f"; source images: {value:.3f}"
