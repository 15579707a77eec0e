"""Which images come in which batch of a stream: numbers alone, whatever the images are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data.orders import order_of, parse_order
from ncttt.data.shuffling import shuffled

BATCH = 128  # images in a batch, where nobody says how many and there are as many


class PlannedBatch(NamedTuple):
    """Of each image of a batch the number of its domain and its place there, both (B,)."""

    domains: np.ndarray
    places: np.ndarray


def planned_batches(
    labels: Sequence[np.ndarray],
    order: str,
    size: int,
    seed: int,
    visits: Sequence[int] | None = None,
    even: bool = False,
) -> list[PlannedBatch]:
    """The batches of a stream through domains of images with these labels, (N,) each.

    The domains come one after another, and no batch has images of two; or, in a mixed order, each image comes once, in
    one of the domains, which have equal shares. `visits` tells how often each was there before. `even` batches are as
    even as can be: 130 images in batches of 128 are two of 65.
    """
    if parse_order(order).mixed:
        domain_of = shuffled(len(labels[0]), seed, 1) % len(labels)
        parts = _parts(order_of(labels[0], order, seed), size, even)
        return [PlannedBatch(domain_of[part], part) for part in parts]
    batches = []
    for number, each in enumerate(labels):
        places = order_of(each, order, seed, 0 if visits is None else visits[number])
        batches += [PlannedBatch(np.full(len(part), number), part) for part in _parts(places, size, even)]
    return batches


def check_batch_size(size: Any) -> None:
    """Raise an `InputError` unless this is a whole number from 1."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InputError(f"batch_size must be a whole number of at least 1; found {size!r}")


def _parts(places: np.ndarray, size: int, even: bool) -> list[np.ndarray]:
    if even:
        return np.array_split(places, -(-len(places) // size))
    return [places[start : start + size] for start in range(0, len(places), size)]
