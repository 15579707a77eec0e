"""Monitor: tells, without labels, how odd images look to a classifier and whether a stream has drifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.source import Source
from ncttt.model.branched import Branched
from ncttt.model.taps import check_copy, check_eager
from ncttt.monitor.calibration import BRANCH, CERTAINTY, FEATURES, Calibration, calibration_of
from ncttt.monitor.looking import Look, look_at
from ncttt.monitor.stored import read_calibration, write_calibration
from ncttt.monitor.window import SlidingWindow, Window, upper_tail


@dataclass(frozen=True)
class Reading:
    """What a monitor says of a batch of B images.

    `p` `(B,)` is the share of source images that look at least as unlike the others: low means drifted, and of source
    images one in a hundred lies below 0.01. `signals` are the same for each signal alone, `values` the signals
    themselves: confidence, evidence, distance of the features (0 for the mean source image, in spreads), score of the
    branch. `logits` are those of the model as it was trained, from the same pass. `window` speaks of the last images
    together.
    """

    p: Tensor
    signals: Mapping[str, Tensor]
    values: Mapping[str, Tensor]
    logits: Tensor
    window: Window


class Monitor:
    """Watches the images that a classifier gets, with the weights and statistics that it was trained with.

    Takes any classifier; a plain module may say its `mean` and `std`. `calibrate` it on held-out source images, then
    call it with each batch, of one image or more. The last `window` images, across batches, are tested together; of
    windows of source images a share of `false_alarms` raises the alarm. It works on a copy; with `copy=False` on the
    model itself, which must then stay as it is.

    >>> import ncttt, torch
    >>> monitor = ncttt.Monitor(ncttt.models.small(), window=8)
    >>> monitor = monitor.calibrate(torch.rand(64, 3, 32, 32) for _ in range(2))
    >>> reading = monitor(torch.rand(8, 3, 32, 32))
    >>> reading.p.shape, monitor(torch.zeros(8, 3, 32, 32)).window.alarm
    (torch.Size([8]), True)
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        window: int = 128,
        false_alarms: float = 0.01,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        copy: bool = True,
    ):
        self.model = _own(model, mean, std, copy)
        self.window, self.false_alarms = window, false_alarms
        if not isinstance(window, int) or window < 1:
            raise InputError(f"window must be a whole number of images from 1; found {window!r}")
        if not 0 < false_alarms < 1:
            raise InputError(f"false_alarms must be a share between 0 and 1; found {false_alarms!r}")
        self._stream: SlidingWindow | None = None

    @property
    def calibrated(self) -> bool:
        """Whether it is known how source images look."""
        return self._stream is not None

    def calibrate(self, batches: Any) -> Monitor:
        """Learn how source images look that the model was not trained on, and return the monitor.

        Batches are images, or pairs whose first part is; or they come from an `ImageSet`, or a Dataset or DataLoader of
        PyTorch. Labels, if there are any, are not looked at.
        """
        from ncttt.data.batching import source_batches  # needs Pillow, without which a monitor works

        looks = [self._look(batch if isinstance(batch, Tensor) else batch[0]) for batch in source_batches(batches)]
        if not looks:
            raise InputError("calibration needs at least one batch of source images; found none")
        self._use(calibration_of(looks))
        return self

    def __call__(self, images: Tensor) -> Reading:
        """Look at images `(B, C, H, W)` in [0, 1] by one forward pass, and test the window that they end."""
        stream, look = self._ready(), self._look(images)
        calibration = stream.calibration
        scores = calibration.scores(look)
        window = stream.add(scores, look.logits.argmax(1).cpu())
        shares = {
            name: _share(column, name == BRANCH)
            for name, column in zip(calibration.signals, scores.each.T, strict=True)
        }
        return Reading(_share(scores.unlike), shares, _values(calibration, look), look.logits, window)

    def new_stream(self) -> None:
        """Empty the window: the images that follow have nothing to do with those before."""
        self._stream = SlidingWindow(self._ready().calibration, self.window, self.false_alarms)

    def kept_window(self) -> dict[str, Tensor]:
        """The images in the window as tensors, for `go_on`."""
        return self._ready().kept()

    def go_on(self, kept: Mapping[str, Tensor]) -> Window | None:
        """Go on from what `kept_window` gave with the same calibration; what that window says, if it has images."""
        return self._ready().go_on(kept)

    def save(self, file: str | Path) -> None:
        """Write the calibration as safetensors; the images in the window are not part of it."""
        write_calibration(Path(file), self._ready().calibration, self.model)

    def load(self, file: str | Path) -> Monitor:
        """Read a calibration that `save` wrote for the same weights, and return the monitor."""
        self._use(read_calibration(Path(file), self.model))
        return self

    def __repr__(self) -> str:
        known = f"{self._stream.calibration.images} source images" if self._stream else "not calibrated"
        return f"Monitor(window={self.window}, false_alarms={self.false_alarms:g}, {known})"

    def _use(self, calibration: Calibration) -> None:
        needed = max(self.window, int(1 / self.false_alarms))
        if calibration.images < needed:
            raise InputError(
                f"a window of {self.window} and a rate of false alarms of {self.false_alarms:g} need at least {needed} "
                f"calibration images; found {calibration.images}"
            )
        self._stream = SlidingWindow(calibration, self.window, self.false_alarms)

    def _ready(self) -> SlidingWindow:
        if self._stream is None:
            raise InputError(
                "this monitor does not know how source images look: calibrate(batches) or load(file) first"
            )
        return self._stream

    def _look(self, images: Tensor) -> Look:
        self.model.check_images(images)
        return look_at(self.model, images.to(self.model.mean))


def _own(model: nn.Module, mean: Sequence[float] | None, std: Sequence[float] | None, copied: bool) -> Branched:
    if not isinstance(model, nn.Module) or hasattr(model, "predict_at"):
        raise InputError(
            f"a Monitor watches a classifier, not what adapts it: give it an nn.Module; found {model!r:.80}"
        )
    if isinstance(model, Branched) and (mean is not None or std is not None):
        raise InputError("this model has a normalisation of its own; leave mean and std out")
    check_eager(model)
    own = deepcopy(model) if copied else model
    check_copy(own)
    return own if isinstance(own, Branched) else Branched(own, None, Source(), mean, std)


def _share(scores: Tensor, two_sided: bool = False) -> Tensor:
    """The share of source images that are at least as odd."""
    return 2 * upper_tail(scores.abs()) if two_sided else upper_tail(scores)


def _values(calibration: Calibration, look: Look) -> dict[str, Tensor]:
    values = dict(zip(CERTAINTY, (look.logits.softmax(1).amax(1), look.logits.logsumexp(1)), strict=True))
    if calibration.layers:
        values[FEATURES] = calibration.standardised(look)[:, 2 : 2 + len(calibration.layers)].mean(1)
    return values | ({} if look.score is None else {BRANCH: look.score})
