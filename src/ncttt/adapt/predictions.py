"""Predictions for folders of unlabelled images, as CSV files that grow batch by batch, and a summary of them.

The command line takes its options from `adapt_folders`, so that nothing here may import torch at the top.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ncttt import adapt, methods, zoo
from ncttt.base.csv_files import GrowingRows, Values, growing_csv
from ncttt.base.errors import InputError
from ncttt.base.files import check_place, is_special
from ncttt.base.locks import alone_with
from ncttt.base.progress import ProgressDisplay
from ncttt.base.signals import listening
from ncttt.base.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from ncttt.adapt.folders import Adapted, FolderStream
    from ncttt.adapt.summary import Tally
    from ncttt.model.branched import Branched
else:
    Branched = Any  # the command line looks at the types of `adapt_folders`, and those in quotes it would import

PREDICTIONS = ("file", "label", "probability", "source_label", "source_probability", "shift", "batch")
TRACE = (
    "batch",
    "folder",
    "images",
    "steps",
    "stopped",
    "loss_first",
    "loss_last",
    "shift_before",
    "shift_after",
    "confidence",
    "evidence",
    "changed",
    "collapsed",
    "agreement",
    "regret",
    "class_shift",
    "entropy",
    "score",
)


def adapt_folders(
    model: str | Path | Branched,
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    trace: str | None = None,
    method: str | None = None,
    settings: dict[str, Any] | None = None,
    protocol: str = "episodic",
    batch_size: int | None = None,
    stop: Literal["source", "none"] = "source",
    steps: int | None = None,
    lr: float | None = None,
    norm: str | None = None,
    on_collapse: Literal["reset", "freeze", "warn", "none"] | None = None,
    shuffle: bool | None = None,
    order: str | None = None,
    skip_bad: bool = False,
    resize: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Adapt a model to folders of images, write its predictions and return a summary, as `Tally.facts` gives it.

    Interrupted, it keeps the predictions that it has made. A model that is given, not named, stays on its device.

    Args:
        model: Zoo name or folder of the model, or the model.
        images: Folders of images, or image files, one or several, in the order of the stream; folders are read at any
            depth.
        out: CSV file for the predictions, a row for each image.
        trace: CSV file for the trace, a row for each batch; by default NAME.trace.csv next to the predictions.
        method: Name of the method; by default the one that the model was trained for.
        settings: Settings of the method, as JSON, in place of the model's own.
        protocol: episodic forgets after each batch, online at each new folder, continual never.
        batch_size: Largest number of images in a batch, by default 128; a folder is divided evenly.
        stop: source leaves batches that look like source images to the model as it was trained; none adapts to all
            batches.
        steps: Adaptation steps, in place of the method's own.
        lr: Learning rate, in place of the method's own.
        norm: BatchNorm statistics, in place of the method's own: source, batch, a blend such as blend(0.1), or those of
            a stream such as stream(0.01).
        on_collapse: What to do when learning has made the predictions worse: reset goes back to the model without what
            it has learned, freeze stays there, warn says so, none does not watch; by default reset, if the protocol
            remembers.
        shuffle: Shuffle the images of each folder. By default only folders that are sorted by class are shuffled, if
            the protocol forgets at each folder.
        order: The same as a word: random shuffles, given keeps the order of file names.
        skip_bad: Leave out image files that cannot be read instead of stopping at the first.
        resize: How images are brought to the model's size: square, crop or crop(R), such as crop(256); by default as in
            the model's training.
        seed: Seed of the shuffling and of the adaptation.
        device: cpu, cuda or cuda:N.
        threads: Number of processor threads; by default one for each core.
        overwrite: Replace the files of an earlier run.
    """
    check_place(Path(out))
    trace_file = trace or str(Path(out).with_suffix(".trace.csv"))
    if not overwrite:
        check_new(str(out), trace_file)
    if method is not None:
        methods.METHODS.find(method)  # first, because the model may be for this very method
    loaded = _loaded(model, device, threads)
    chosen = methods.method_for(loaded.method, method, settings)
    if stop == "source" and not loaded.calibrated:
        name = model if isinstance(model, str | Path) else "the model"
        raise InputError(
            f"{name} does not know how certain it is of source images, as --stop source needs: use --stop none, or "
            "calibrate it (model.calibrate(batches) in Python, then ncttt.save)"
        )
    stream = adapt.FolderStream(
        loaded,
        images,
        chosen,
        batch_size=batch_size,
        protocol=protocol,
        stop="source" if stop == "source" else None,
        steps=steps,
        lr=lr,
        norm=norm,
        on_collapse=_on_collapse(on_collapse, protocol),
        shuffle=shuffle,
        order=order,
        skip_bad=skip_bad,
        resize=resize,
        seed=seed,
    )
    tally = adapt.Tally(loaded)
    _write(stream, tally, str(out), trace_file)
    facts = {"unreadable": stream.images - tally.images, "sorted_folders": list(stream.sorted_folders)}
    return tally.facts() | facts | {"predictions": str(out), "trace": trace_file}


def prediction_rows(batch: "Adapted", classes: Sequence[str] | None) -> list[Values]:
    """A row of `PREDICTIONS` for each image; classes without names are numbers."""
    scores = [None] * len(batch.files) if batch.shift is None else batch.shift.tolist()
    columns = (*_predicted(batch.logits, classes), *_predicted(batch.source_logits, classes))
    return [
        (file, *(_short(value) for value in values), _short(score), batch.number)
        for file, *values, score in zip(batch.files, *columns, scores, strict=True)
    ]


def trace_row(batch: "Adapted") -> Values:
    """The row of `TRACE` of a batch; what does not apply is empty."""
    trace = batch.trace
    ends = (trace.losses[0], trace.losses[-1]) if trace.losses else (None, None)
    figures = (*ends, trace.shift_before, trace.shift_after, trace.confidence, trace.evidence)
    beginning = (batch.number, batch.folder, len(batch.files), trace.steps, trace.stopped)
    watched = (trace.agreement, trace.regret, trace.class_shift, trace.entropy, trace.score)
    collapsed = None if trace.agreement is None else int(trace.collapsed)
    return (*beginning, *map(_short, figures), batch.changed, collapsed, *map(_short, watched))


def _on_collapse(asked: str | None, protocol: str) -> Any:
    """The policy of an adapter; a protocol that forgets after each batch leaves nothing that could collapse."""
    if asked is None:
        return "reset" if adapt.PROTOCOLS.find(protocol).remembers else None
    return None if asked == "none" else asked


def _loaded(model: str | Path | Branched, device: str, threads: int | None) -> Branched:
    # Torch takes a second to import, which the help of the command line does without.
    from ncttt.base.devices import available, use_threads

    use_threads(threads)
    return zoo.load(model).to(available(device)) if isinstance(model, str | Path) else model


def check_new(*files: str) -> None:
    """Raise rather than replace what an earlier run has written."""
    for file in files:
        if Path(file).exists() and not is_special(Path(file)):
            raise InputError(f"{file} is there already; choose another --out, or replace it with --overwrite")


def _write(stream: "FolderStream", tally: "Tally", out: str, trace: str) -> None:
    """Go through a stream, write its rows and count; a signal ends it after the batch in hand."""
    if not is_special(Path(out)) and Path(out).resolve() == Path(trace).resolve():
        raise InputError(f"predictions and trace need a file each; found {out} for both")
    _check_spares_images(stream, out, trace)
    progress = ProgressDisplay("batches", len(stream), lines=False)
    with ExitStack() as stack:
        for path in (Path(out), Path(trace)):
            check_place(path)
            if not is_special(path):
                stack.enter_context(alone_with(path))
        predictions = stack.enter_context(_told(out, tally, progress))
        batches = stack.enter_context(growing_csv(trace, TRACE))
        request = stack.enter_context(listening())
        stack.enter_context(progress)
        for batch in stream:
            predictions(prediction_rows(batch, tally.model.classes))
            batches([trace_row(batch)])
            tally.add(batch)
            progress.advance()
            if request.signal is not None:
                request.obey()


def _check_spares_images(stream: "FolderStream", *files: str) -> None:
    """Raise rather than replace an image by what was predicted for it."""
    existing = [Path(file) for file in files if Path(file).exists()]
    for image in (Path(file) for batch in stream.batches for file in batch.files):
        for file in existing:
            if image.name == file.name and image.exists() and image.samefile(file):
                raise InputError(f"{file} is one of the images; choose another file for what is written")


@contextmanager
def _told(out: str, tally: "Tally", progress: ProgressDisplay) -> Iterator[GrowingRows]:
    """The rows of the predictions; a run that stops early says where they are once the file has its last name."""
    rows = None
    try:
        with growing_csv(out, PREDICTIONS) as rows:
            yield rows
    except BaseException:
        if rows is not None and tally.images:
            verb = "is" if tally.images == 1 else "are"
            progress.say(f"ncttt: stopped; the {counted(tally.images, 'prediction')} so far {verb} in {rows.path}")
        raise


def _predicted(logits: "Tensor", classes: Sequence[str] | None) -> tuple[list[Any], list[float]]:
    """The most probable class of each image, and its probability."""
    probability, index = logits.softmax(1).max(1)
    return [classes[number] if classes else number for number in index.tolist()], probability.tolist()


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
