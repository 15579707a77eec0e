"""Streams: images that come batch by batch, in an order, from one domain after another or from all of them mixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.base.numbers import check_seed
from ncttt.data.corruptions import CLEAN
from ncttt.data.files.imageset import Images, ImageSet
from ncttt.data.loading import CorruptedImages
from ncttt.data.orders import parse_order
from ncttt.data.planning import BATCH, PlannedBatch, check_batch_size, planned_batches
from ncttt.data.sequences import parse_sequence
from ncttt.data.shuffling import shuffled


class Domain(NamedTuple):
    """Images of one kind, (N, H, W, C), with their labels (N,) if there are any; `severity` is 0 for clean images."""

    name: str
    images: Images
    labels: np.ndarray | None = None
    severity: int = 0


class StreamBatch(NamedTuple):
    """A batch: images float `(B, C, H, W)` in [0, 1], labels `(B,)` if there are any, and where each image is from.

    `domain` is the first image's, the only one unless domains are mixed; `new_domain` tells that another one begins, so
    that a loop can say so to an `Adapter`.
    """

    images: Tensor
    labels: Tensor | None
    domain: Domain
    new_domain: bool
    domains: np.ndarray
    places: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Batches of images from `domains`, in an order: `random`, `given`, `by_class` or `dirichlet(0.1)` and the like.

    The domains come one after another, and no batch has images of two. A domain that comes again, the same object, is
    another visit, in another order. With `mixed`, or `mixed(by_class)` and the like, each image comes once, in one of
    the domains, which then must show the same images. A batch has 128 images, or all of a domain where there are fewer;
    a `batch_size` that no domain has the images for is an error. With `even`, batches are as even as can be, and no
    larger than asked. The `seed` decides everything. `Stream.corrupted` makes a stream from a set of images.

    >>> from ncttt.data import load
    >>> digits = load("digits", "test")
    >>> stream = Stream.corrupted(digits, ["fog"], sequence="gradual", order="by_class", batch_size=50, images=100)
    >>> [batch.domain.severity for batch in stream][::2]
    [1, 2, 3, 4, 5, 4, 3, 2, 1]
    """

    domains: Sequence[Domain]
    order: str = "random"
    batch_size: int | None = None
    seed: int = 0
    even: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not self.domains:
            raise InputError("a stream needs at least one domain; found none")
        check_seed("seed", self.seed)
        parsed = parse_order(self.order)
        for domain in self.domains:
            if not len(domain.images):
                raise InputError(f"the domain {domain.name} has no images")
            if domain.labels is not None and len(domain.labels) != len(domain.images):
                raise InputError(
                    f"the domain {domain.name} has {len(domain.images)} images and {len(domain.labels)} labels; "
                    "expected one label for each image, or None"
                )
            if domain.labels is None and parsed.needs_labels:
                raise InputError(
                    f"the order {self.order!r} follows the classes of images, and those of {domain.name} have no "
                    "labels; use 'random' or 'given'"
                )
        self._check_batch_size()
        if parsed.mixed and len({len(domain.images) for domain in self.domains}) > 1:
            raise InputError("a mixed order shows each image in one of the domains, which must have the same images")

    @classmethod
    def corrupted(
        cls,
        data: ImageSet,
        corruptions: Sequence[str],
        severity: int = 5,
        *,
        sequence: str = "once",
        images: int | None = None,
        constants: str | None = None,
        **settings: Any,
    ) -> Stream:
        """A stream through corruptions of a set, or of the first `images` that `seed` draws from it.

        `corruptions` are names, `clean` among them if wanted. `sequence` is `once`, or `gradual` (severities 1-2-3-4-5-
        4-3-2-1), `visits(2)` (all of it twice) and `clean_every(4)` (every fourth domain clean), joined by `+`.
        Images are corrupted when their turn comes; `settings` are those of the stream.
        """
        kinds = parse_sequence(sequence).domains(corruptions, severity)
        count, seed = len(data) if images is None else images, settings.get("seed", 0)
        check_seed("seed", seed)
        if not 1 <= count <= len(data):
            raise InputError(f"a domain shows 1 to {len(data)} images of {data.name}; found {count}")
        places = np.sort(shuffled(len(data), seed, 0)[:count])
        made = {kind: corrupted_domain(data, places, *kind, constants) for kind in dict.fromkeys(kinds)}
        return cls(domains=[made[kind] for kind in kinds], **settings)

    @cached_property
    def batches(self) -> list[PlannedBatch]:
        """Which images come in which batch."""
        labels = [
            np.zeros(len(domain.images), np.int64) if domain.labels is None else domain.labels
            for domain in self.domains
        ]
        return planned_batches(labels, self.order, self.batch_size or BATCH, self.seed, self._visits(), self.even)

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[StreamBatch]:
        mixed, last = parse_order(self.order).mixed, int(self.batches[0].domains[0])
        for domains, places in self.batches:
            number = int(domains[0])
            pixels = torch.from_numpy(_gathered(self.domains, domains, places)).to(self.device).permute(0, 3, 1, 2)
            floats = pixels.float().div_(255) if pixels.dtype == torch.uint8 else pixels
            labels = _labels(self.domains, domains, places)
            begins = number != last and not mixed
            yield StreamBatch(floats, labels, self.domains[number], begins, domains, places)
            last = number

    @property
    def domain_of_images(self) -> np.ndarray:
        """The number of the domain that each image comes from, (N,)."""
        return np.concatenate([batch.domains for batch in self.batches])

    @property
    def places(self) -> np.ndarray:
        """The place in its domain of each image, (N,)."""
        return np.concatenate([batch.places for batch in self.batches])

    def _check_batch_size(self) -> None:
        """Raise for a size that is asked for, and that no batch would have."""
        if self.batch_size is None:
            return
        check_batch_size(self.batch_size)
        largest = max(self.domains, key=lambda domain: len(domain.images))
        if not self.even and self.batch_size > len(largest.images):
            raise InputError(
                f"batches of {self.batch_size} images need a domain with as many; found {len(largest.images)} in "
                f"{largest.name}, the largest"
            )

    def _visits(self) -> list[int]:
        """For each domain, how often it was there before."""
        seen: dict[int, int] = {}
        visits = []
        for domain in self.domains:
            visits.append(seen.get(id(domain), 0))
            seen[id(domain)] = visits[-1] + 1
        return visits


def corrupted_domain(
    data: ImageSet, places: np.ndarray, corruption: str, severity: int, constants: str | None = None
) -> Domain:
    """The images of a set at these places under a corruption, made when they are indexed."""
    drawn = data.subset(places)
    if corruption == CLEAN:
        return Domain(CLEAN, drawn.images, drawn.labels)
    images = CorruptedImages(data.images, corruption, severity, 0, places, constants)
    return Domain(corruption, images, drawn.labels, severity)


def _gathered(sources: Sequence[Domain], domains: np.ndarray, places: np.ndarray) -> np.ndarray:
    first = sources[int(domains[0])].images
    if (domains == domains[0]).all():
        return np.ascontiguousarray(first[places])
    parts = {number: sources[number].images[places[domains == number]] for number in np.unique(domains)}
    pixels = np.empty((len(places), *first.shape[1:]), parts[domains[0]].dtype)
    for number, part in parts.items():
        pixels[domains == number] = part
    return pixels


def _labels(sources: Sequence[Domain], domains: np.ndarray, places: np.ndarray) -> Tensor | None:
    labels = [sources[number].labels for number in domains]
    if any(each is None for each in labels):
        return None
    return torch.tensor([int(each[place]) for each, place in zip(labels, places, strict=True) if each is not None])
