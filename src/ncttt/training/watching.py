"""Watching a training: a live bar on a terminal, a line an epoch elsewhere, TensorBoard if it is installed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.base.progress import ProgressDisplay, clock
from ncttt.training.epoch import Epoch

SECONDS = 0.5  # between two looks at the metrics of a step: reading them makes a GPU wait


class Observer:
    """What a training tells: its size, the metrics of every step, and every finished epoch; nothing by default."""

    def begin(self, steps: int, epochs: int, start: int) -> None:
        """The training has so many steps and epochs, of which `start` steps are done."""

    def step(self, step: int, metrics: Tensor, images: int) -> None:
        """A step is done; metrics are cross-entropy, auxiliary loss and accuracy, still on the device."""

    def epoch(self, epoch: Epoch) -> None:
        """An epoch is done and evaluated."""

    def end(self) -> None:
        """The training is over, or has been stopped."""


class Display(Observer):
    """Losses, accuracy, images a second and the time left, on standard error."""

    def begin(self, steps: int, epochs: int, start: int) -> None:
        self.progress = ProgressDisplay("training", steps, done=start, lines=False).start()
        self.epochs, self.steps, self.images, self.shown = epochs, steps, 0, time.monotonic()

    def step(self, step: int, metrics: Tensor, images: int) -> None:
        self.images += images
        seconds = time.monotonic() - self.shown
        if not self.progress.live or seconds < SECONDS:
            return
        cross_entropy, auxiliary, accuracy = metrics.tolist()
        state = f"loss {cross_entropy:.3f} + {auxiliary:.3f}, accuracy {accuracy:.1%}"
        self.progress.update(step, f"{state}, {self.images / seconds:.0f} images/s")
        self.images, self.shown = 0, self.shown + seconds

    def epoch(self, epoch: Epoch) -> None:
        self.progress.update(epoch.number * self.steps // self.epochs)
        text = f"epoch {epoch.number}/{self.epochs}: {epoch.summary()}"
        if not self.progress.live:  # a bar says these itself
            text += f", {epoch.images_per_second:.0f} images/s, {clock(self.progress.seconds_left())} left"
        self.progress.say(text)

    def end(self) -> None:
        self.progress.stop()


class EpochLines(Observer):
    """A line an epoch on standard error, under a name: for trainings of which several share a terminal."""

    def __init__(self, name: str):
        self.name, self.epochs = name, 0

    def begin(self, steps: int, epochs: int, start: int) -> None:
        self.epochs = epochs

    def epoch(self, epoch: Epoch) -> None:
        print(f"{self.name}: epoch {epoch.number} of {self.epochs}, {epoch.summary()}", file=sys.stderr, flush=True)


class TensorBoard(Observer):
    """Every epoch's metrics as TensorBoard events; needs the extra `tensorboard`."""

    def __init__(self, folder: str | Path):
        try:
            from torch.utils.tensorboard import SummaryWriter  # an extra, which need not be installed
        except ImportError:
            raise InputError(
                "TensorBoard is not installed; install it with: pip install 'ncttt[tensorboard]'"
            ) from None
        self.writer = SummaryWriter(str(folder))

    def epoch(self, epoch: Epoch) -> None:
        for name, value in epoch.row().items():
            if name != "epoch":
                self.writer.add_scalar(name, value, epoch.number)

    def end(self) -> None:
        self.writer.close()
