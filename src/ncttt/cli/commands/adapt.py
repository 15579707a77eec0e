"""`ncttt adapt`: predictions for folders of unlabelled images, with adaptation to them and without."""

import json as json_module
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from ncttt.adapt import adapt_folders
from ncttt.base.words import counted

EXAMPLE = "ncttt adapt --model digits-small-ncttt --images photos --out predictions.csv"
GROUP = "train and adapt"


def adapt(
    *, model: str, images: tuple[str, ...], out: str, trace: str | None = None, json: bool = False, **options: Any
) -> None:
    """Adapt a model to folders of images and write its predictions; an interrupted run keeps those that are written.

    Args:
        model: Zoo name or folder of the model.
        images: Folders of images, or image files, one or several, in the order of the stream; folders are read at any
            depth.
        out: CSV file for the predictions, a row for each image.
        trace: CSV file for the trace, a row for each batch; by default NAME.trace.csv next to the predictions.
        json: Print the summary as JSON, for scripts.
    """
    facts = adapt_folders(model, images, out, trace=trace, **options)
    if json:
        print(json_module.dumps(facts))
    else:
        _show(facts, file=sys.stdout)


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
    yield "images", f"{facts['images']} in {batches}{_counted(facts['unreadable'], 'left out')}"
    adapted = f"{facts['adapted_batches']} of {batches}, {facts['stepped_batches']} by steps"
    fell_back = _counted(facts["fallbacks"], "fell back because something was not finite")
    yield "adapted", adapted + fell_back + _counted(facts["collapses"], "collapsed")
    yield "changed", f"{counted(facts['changed'], 'prediction')}, {facts['changed'] / facts['images']:.1%}"
    yield "confidence", f"{facts['confidence']:.3f}{_source(facts['source_confidence'])}"
    if facts["evidence_in_spreads"] is not None:
        yield "evidence", f"{facts['evidence_in_spreads']:+.2f} spreads from source images"
    if facts["shift"] is not None:
        yield "shift score", f"{facts['shift']:.3f}{_source(facts['source_shift'])}"
    yield "advice", facts["advice"]
    yield "predictions", facts["predictions"]
    yield "trace", facts["trace"]


def _counted(count: int, what: str) -> str:
    return f"; {count} {what}" if count else ""


def _source(value: float | None) -> str:
    return "" if value is None else f"; source images: {value:.3f}"
