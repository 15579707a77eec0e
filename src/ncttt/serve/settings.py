"""The settings of a service; no torch, because the command line takes its options from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from ncttt.base.errors import InputError
from ncttt.base.numbers import check_rate, check_seed, check_threads, check_whole

STREAM = "default"  # the stream of a request that names none
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is served, and within which limits.

    Attributes:
        model: Zoo name or folder of the model.
        method: Name of the method; by default the one that the model was trained for.
        settings: Settings of the method, as JSON, in place of the model's own; in a stream that remembers, a method
            that learns from batches gathers 64 images for its steps unless `gather` says otherwise.
        protocol: online and continual keep a state for each stream; episodic keeps none at all.
        stop: source leaves batches that look like source images to the model as it was trained; none adapts to all
            batches; by default source, if the model is calibrated.
        steps: Adaptation steps, in place of the method's own.
        lr: Learning rate, in place of the method's own.
        norm: BatchNorm statistics, in place of the method's own, such as stream(0.01).
        on_collapse: What to do when learning has made the predictions of a stream worse: reset goes back to the model
            without what it has learned, freeze stays there, none does not watch.
        monitor: Calibration of a drift monitor, a file that Monitor.save wrote, or a data set whose split val
            calibrates one; by default drift is read from the source model's certainty, if the model is calibrated.
        state: Folder of the states of streams, which a later start goes on from.
        batch_size: Number of images of a stream at which a batch waits no longer.
        wait_ms: Milliseconds that the first request of a batch waits for others.
        budget_ms: Milliseconds from arrival to answer; a batch that would take longer gets fewer steps, or none.
        save_seconds: Seconds between two snapshots of a stream; 0 saves every version before it is answered.
        versions: Number of snapshots that are kept of each stream, to roll back to.
        hot_streams: Number of streams in memory; the least recently used go to disk.
        most_streams: Largest number of streams in memory and on disk.
        most_waiting: Largest number of images that wait; requests beyond it are refused with status 429.
        most_images: Largest number of images in a request.
        most_bytes: Largest body of a request, in bytes.
        most_reading: Largest number of bytes of all bodies with images that are being read and decoded; requests
            beyond it are refused with status 429.
        most_pixels: Largest image, in pixels.
        most_predictions: Number of predictions that wait for their labels (feedback).
        most_shown: Number of images of each stream in memory that the dashboard shows; 0 keeps none.
        playground: Let the dashboard send labelled images of a data set to a stream of their own, which
            costs processor time; by default only with --demo.
        seed: Seed of the adaptation.
        device: cpu, cuda or cuda:N.
        threads: Number of processor threads; by default one for each core.
    """

    model: str
    method: str | None = None
    settings: dict[str, Any] | None = None
    protocol: str = "online"
    stop: Literal["source", "none"] | None = None
    steps: int | None = None
    lr: float | None = None
    norm: str | None = None
    on_collapse: Literal["reset", "freeze", "none"] = "reset"
    monitor: str | None = None
    state: str = "runs/serve"
    batch_size: int = 64
    wait_ms: float = 5.0
    budget_ms: float | None = None
    save_seconds: float = 1.0
    versions: int = 8
    hot_streams: int = 32
    most_streams: int = 10_000
    most_waiting: int = 1024
    most_images: int = 128
    most_bytes: int = 32 << 20
    most_reading: int = 512 << 20
    most_pixels: int = 25_000_000
    most_predictions: int = 10_000
    most_shown: int = 12
    playground: bool | None = None
    seed: int = 0
    device: str = "cpu"
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "versions", "hot_streams", "most_images", "most_waiting", "most_bytes"):
            check_whole(name, getattr(self, name), 1)
        for name in ("most_pixels", "most_predictions"):
            check_whole(name, getattr(self, name), 1)
        check_whole("most_shown", self.most_shown, 0, 100)
        check_whole("most_streams", self.most_streams, self.hot_streams)
        check_whole("most_reading", self.most_reading, self.most_bytes)
        if self.most_waiting < self.most_images:
            raise InputError(
                f"most_waiting must hold a request of most_images={self.most_images}; found {self.most_waiting}"
            )
        check_rate("wait_ms", self.wait_ms)
        check_rate("save_seconds", self.save_seconds)
        if self.budget_ms is not None:
            check_rate("budget_ms", self.budget_ms, zero=False)
        check_seed("seed", self.seed)
        check_threads("threads", self.threads)


def checked_name(name: Any) -> str:
    """The name of a stream, which is also that of its folder; an `InputError` for any other text.

    >>> checked_name("door-2")
    'door-2'
    """
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise InputError(
        f"a stream's name has 1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit; "
        f"found {name!r:.80}"
    )
