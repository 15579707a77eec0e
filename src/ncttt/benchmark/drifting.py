"""A stream of images that drifts and comes back: a frozen and an adapting classifier side by side, under a monitor.

Nobody tells the classifiers where a domain ends, as nobody does in use. Labels only score.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.small_batches import SmallBatchWarning
from ncttt.base.errors import InputError
from ncttt.data import ImageSet, batches
from ncttt.data.batching import shuffled
from ncttt.data.corruptions import CLEAN
from ncttt.data.planning import check_batch_size
from ncttt.data.stream import Domain, Stream, corrupted_domain
from ncttt.methods import PTBN, Method
from ncttt.model.branched import Branched
from ncttt.monitor import Monitor

DOMAINS = (CLEAN, "gaussian_noise", "defocus_blur", "contrast", CLEAN)
ONLINE: dict[str, Any] = {"protocol": "online", "steps": 2, "lr": 1e-3, "stop": "source"}  # as docs/adapt.md recommends


class DriftBatch(NamedTuple):
    """A batch of a drifting stream: number and corruption of its domain, images `(B, 3, H, W)`, labels `(B,)`."""

    domain: int
    corruption: str
    images: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Scored:
    """Accuracies, between 0 and 1, on so many images of a domain.

    `frozen` is the model as it was trained, `statistics` the same with the batch's own statistics (PTBN), `adapted` the
    adapter's.
    """

    domain: int
    corruption: str
    images: int
    frozen: float
    statistics: float
    adapted: float


@dataclass(frozen=True)
class DriftRecord(Scored):
    """What came of one batch, the `batch`-th of the stream: its accuracies, and what the monitor said.

    `p` is the share of windows of source images that look at least as unlike the source, and `alarm` whether that
    raised one; `steps` are those that the adapter took, and `stopped` why it took no more.
    """

    batch: int
    p: float
    alarm: bool
    steps: int
    stopped: str


@dataclass(frozen=True, kw_only=True)
class DriftingStream:
    """Batches of labelled images that pass through `domains`, each a corruption or `clean`, at one severity.

    Each domain shows `images` of the set, others than the one before while there are enough. `seed` decides which and
    in what order; an image is always corrupted in the same way.
    """

    data: ImageSet
    images: int
    batch_size: int
    severity: int
    domains: Sequence[str] = DOMAINS
    constants: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.images <= len(self.data.images):
            raise InputError(f"a domain shows 1 to {len(self.data.images)} images; found {self.images}")
        if not self.domains:
            raise InputError("a stream needs at least one domain; found none")
        check_batch_size(self.batch_size)
        if self.batch_size > self.images:
            raise InputError(f"batches of {self.batch_size} images need as many in a domain; found {self.images}")

    def __len__(self) -> int:
        return len(self.domains) * -(-self.images // self.batch_size)

    def __iter__(self) -> Iterator[DriftBatch]:
        for batch in self.stream:
            assert batch.labels is not None
            number = int(batch.domains[0])
            yield DriftBatch(number, self.domains[number], batch.images, batch.labels)

    @property
    def stream(self) -> Stream:
        """The stream itself."""
        self.data.labels_for("a drifting stream")
        domains = [self._domain(number) for number in range(len(self.domains))]
        return Stream(domains=domains, order="given", batch_size=self.batch_size)

    def domain(self, number: int) -> ImageSet:
        """The images of a domain, corrupted, in the order of the stream."""
        domain = self._domain(number)
        return replace(self.data, images=np.asarray(domain.images[:]), labels=domain.labels)

    def _domain(self, number: int) -> Domain:
        order = shuffled(len(self.data.images), self.seed, 0)
        places = order.take(range(number * self.images, (number + 1) * self.images), mode="wrap")
        corruption = self.domains[number]
        return corrupted_domain(
            self.data, places, corruption, 0 if corruption == CLEAN else self.severity, self.constants
        )


def monitor_of(model: Branched, held_out: ImageSet, window: int = 128) -> Monitor:
    """A monitor of the model that knows held-out source images."""
    return Monitor(model, window=window).calibrate(batches(held_out, window))


def follow(
    stream: Iterable[DriftBatch], model: Branched, monitor: Monitor, method: Method | None = None, **settings: Any
) -> Iterator[DriftRecord]:
    """Show a stream to the model as it is, with batch statistics, and adapting; yield a record after each batch.

    `settings` are those of the adapter; by default it adapts online, and leaves to the source what looks like it.
    """
    adapter, statistics = Adapter(model, method, **(ONLINE | settings)), Adapter(model, PTBN())
    for number, batch in enumerate(stream):
        reading = monitor(batch.images)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallBatchWarning)  # the records say what batch statistics are worth
            logits = {
                "frozen": reading.logits,
                "statistics": statistics(batch.images),
                "adapted": adapter(batch.images),
            }
        yield DriftRecord(
            batch=number,
            domain=batch.domain,
            corruption=batch.corruption,
            images=len(batch.images),
            **{name: _accuracy(each, batch.labels) for name, each in logits.items()},
            p=reading.window.p,
            alarm=reading.window.alarm,
            steps=adapter.trace.steps,
            stopped=adapter.trace.stopped,
        )


def _accuracy(logits: Tensor, labels: Tensor) -> float:
    return (logits.argmax(1).cpu() == labels).float().mean().item()


@dataclass(frozen=True)
class DomainSummary(Scored):
    """A domain of a stream: how many images it had, three accuracies, and the share of its batches that alarmed."""

    alarms: float


def summaries(records: Iterable[DriftRecord]) -> list[DomainSummary]:
    """What records say of each domain, in the order of the stream.

    >>> record = DriftRecord(0, "clean", 50, 0.98, 0.96, 0.98, 0, 0.4, False, 0, "left to source")
    >>> summaries([record, replace(record, batch=1, images=100, frozen=0.95)])[0].frozen
    0.96
    """
    domains: dict[int, list[DriftRecord]] = {}
    for record in records:
        domains.setdefault(record.domain, []).append(record)
    return [_summary(each) for each in domains.values()]


def shifted_mean(domains: Iterable[DomainSummary], name: str) -> float:
    """The mean of `frozen`, `statistics` or `adapted` over the images of domains that are not clean."""
    shifted = [domain for domain in domains if domain.corruption != CLEAN]
    if not shifted:
        raise InputError("every domain of this stream is clean")
    return sum(getattr(domain, name) * domain.images for domain in shifted) / sum(domain.images for domain in shifted)


def _summary(records: Sequence[DriftRecord]) -> DomainSummary:
    images = sum(record.images for record in records)

    def mean(name: str) -> float:
        return sum(getattr(record, name) * record.images for record in records) / images

    first, alarms = records[0], sum(record.alarm for record in records) / len(records)
    return DomainSummary(
        first.domain, first.corruption, images, mean("frozen"), mean("statistics"), mean("adapted"), alarms
    )
