"""Watching a training: a live bar on a terminal, plain lines elsewhere, TensorBoard if it is installed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TextIO

from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.training.figures import Epoch


class Observer:
    """What a training tells: its size, the figures of every step, and every finished epoch; nothing by default."""

    def begin(self, steps: int, epochs: int, start: int) -> None:
        """The training has so many steps and epochs, of which `start` steps are done."""

    def step(self, step: int, figures: Tensor, images: int) -> None:
        """A step is done; figures are cross-entropy, auxiliary loss and accuracy, still on the device."""

    def epoch(self, epoch: Epoch) -> None:
        """An epoch is done and evaluated."""

    def end(self) -> None:
        """The training is over, or has been stopped."""


class Lines(Observer):
    """One line an epoch, for logs."""

    def __init__(self, file: TextIO | None = None):
        self.file = file

    def begin(self, steps: int, epochs: int, start: int) -> None:
        self.epochs, self.steps, self.start, self.began = epochs, steps, start, time.monotonic()

    def epoch(self, epoch: Epoch) -> None:
        done = epoch.number * self.steps // self.epochs - self.start
        left = (time.monotonic() - self.began) / max(1, done) * (self.steps - self.start - done)
        text = f"epoch {epoch.number}/{self.epochs}: {summary(epoch)}, {epoch.images_per_second:.0f} images/s"
        print(f"{text}, {clock(left)} left", file=self.file or sys.stderr, flush=True)


class Bar(Observer):
    """A live bar with losses, accuracy, images a second and the time left."""

    def begin(self, steps: int, epochs: int, start: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = ("training", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
        self.progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
        self.progress.start()
        self.task = self.progress.add_task("", total=steps, completed=start, state="")
        self.epochs, self.steps, self.images, self.shown = epochs, steps, 0, time.monotonic()

    def step(self, step: int, figures: Tensor, images: int) -> None:
        self.images += images
        now = time.monotonic()
        if now - self.shown < 0.5:  # reading figures makes a GPU wait
            return
        cross_entropy, auxiliary, accuracy = figures.tolist()
        state = f"loss {cross_entropy:.3f} + {auxiliary:.3f}, accuracy {accuracy:.1%}"
        speed = self.images / (now - self.shown)
        self.progress.update(self.task, completed=step, state=f"{state}, {speed:.0f} images/s")
        self.images, self.shown = 0, now

    def epoch(self, epoch: Epoch) -> None:
        self.progress.update(self.task, completed=epoch.number * self.steps // self.epochs)
        self.progress.console.print(f"epoch {epoch.number}/{self.epochs}: {summary(epoch)}", highlight=False)

    def end(self) -> None:
        self.progress.stop()


class TensorBoard(Observer):
    """Every epoch's figures as TensorBoard events; needs the extra `tensorboard`."""

    def __init__(self, folder: str | Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
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


def watcher() -> Observer:
    """The bar if standard error is a terminal, else lines."""
    return Bar() if sys.stderr.isatty() else Lines()


def summary(epoch: Epoch) -> str:
    """The figures of an epoch in words.

    >>> summary(Epoch(1, 0.52, 0.61, 0.9, held_out={"accuracy": 0.88}))
    'loss 0.520 + 0.610, accuracy 90.0%, held out 88.0%'
    """
    text = f"loss {epoch.cross_entropy:.3f} + {epoch.auxiliary:.3f}, accuracy {epoch.accuracy:.1%}"
    return text + (f", held out {epoch.held_out['accuracy']:.1%}" if epoch.held_out else "")


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours.

    >>> clock(75), clock(7260)
    ('1:15', '2:01:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
