"""What `ncttt adapt` writes and prints."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ncttt.adapt import PREDICTIONS, TRACE, Adapted, FolderStream, Tally, growing_table, prediction_rows, trace_row
from ncttt.base.errors import InputError
from ncttt.base.signals import listening
from ncttt.model.branched import Branched
from ncttt.model.certainty import source_levels


def check_calibrated(model: Branched, name: str) -> None:
    """Raise unless the model knows how certain it is of source images."""
    if source_levels(model, 1) is None:
        raise InputError(
            f"{name} does not know how certain it is of source images, as --stop source needs: use --stop none, or "
            "calibrate it (model.calibrate(batches) in Python, then ncttt.save)"
        )


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as one line each, without the place in the code that they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *rest: print(f"ncttt: {message}", file=sys.stderr)
        yield


def written(stream: FolderStream, tally: Tally, out: str, trace: str) -> None:
    """Go through a stream, write its rows and count; a signal ends it after the batch in hand."""
    if out == trace:
        raise InputError(f"predictions and trace need a file each; found {out} for both")
    try:
        with listening() as request, growing_table(out, PREDICTIONS) as images, growing_table(trace, TRACE) as batches:
            for batch in _watched(stream):
                images(prediction_rows(batch, tally.model.classes))
                batches([trace_row(batch)])
                tally.add(batch)
                if request.signal is not None:
                    request.obey()
    except BaseException:
        if tally.images:
            print(f"ncttt: stopped; the {tally.images} predictions so far are in {out}", file=sys.stderr)
        raise


def show(facts: dict[str, Any], file: TextIO) -> None:
    """The summary: a table on a terminal, a line for each figure elsewhere."""
    lines = list(_lines(facts))
    if not file.isatty():
        for name, text in lines:
            print(f"{name}: {text}", file=file)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    for line in lines:
        table.add_row(*line)
    Console(file=file).print(table)


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "images", f"{facts['images']} in {facts['batches']} batches{_counted(facts['unreadable'], 'left out')}"
    adapted = f"{facts['adapted_batches']} of {facts['batches']} batches, {facts['stepped_batches']} by steps"
    yield "adapted", adapted + _counted(facts["fallbacks"], "fell back because something was not finite")
    yield "changed", f"{facts['changed']} predictions, {facts['changed'] / facts['images']:.1%}"
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


def _watched(stream: FolderStream) -> Iterable[Adapted]:
    """The batches, with a bar on a terminal."""
    if not sys.stderr.isatty():
        return stream
    from rich.console import Console
    from rich.progress import track

    return track(stream, "adapting", total=len(stream), console=Console(stderr=True), transient=True)
