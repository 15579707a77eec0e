"""The stream of the demonstration: a shipped model meets clean images, shifts, and clean images again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ncttt.benchmark.drifting import DriftingStream, DriftRecord, follow, monitor_of
from ncttt.data import load
from ncttt.data.corruptions import CLEAN
from ncttt.demo.setups import BATCH, SETUPS
from ncttt.demo.threads import one_thread
from ncttt.model.branched import Branched
from ncttt.monitor import Monitor
from ncttt.zoo import checkpoint

WINDOW = 100  # images that the monitor tests together


@dataclass(frozen=True)
class DemoStream:
    """A drifting stream with the model that meets it and the monitor that watches; iterating gives its records."""

    data: str
    stream: DriftingStream
    model: Branched
    monitor: Monitor

    def __len__(self) -> int:
        """How many batches it has."""
        return len(self.stream)

    def __iter__(self) -> Iterator[DriftRecord]:
        self.monitor.new_stream()
        with one_thread():
            yield from follow(self.stream, self.model, self.monitor)


def demo_stream(data: str, images: int, seed: int = 0, root: str | None = None) -> DemoStream:
    """The stream for digits or cifar10, with so many test images in each domain."""
    setup = SETUPS[data]
    model = checkpoint.load(setup.model)
    test, held_out = (load(data, split, root=root) for split in ("test", "val"))
    count = min(images, len(test.images))
    stream = DriftingStream(
        data=test,
        images=count,
        batch_size=min(BATCH, count),
        severity=setup.severity,
        domains=(CLEAN, *setup.shifts, CLEAN),
        constants=setup.constants,
        seed=seed,
    )
    return DemoStream(data, stream, model, monitor_of(model, held_out, WINDOW))
