"""The order in which images come: shuffled, by class or in bursts of classes; a corruption at a time or all mixed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.data.batching import shuffled

ORDERS = ("random", "by_class", "dirichlet(0.1)")
SLOTS = 20  # stretches of time over which a Dirichlet order spreads each class


def order_of(labels: np.ndarray, order: str, seed: int) -> np.ndarray:
    """The places 0 .. N - 1 in the order of a stream.

    `random` is a fair shuffle; `by_class` shows one class after another; `dirichlet(c)` spreads each class unevenly
    over the stream, the more so the smaller the concentration c.

    >>> order_of(np.array([1, 0, 1, 0]), "by_class", seed=0).tolist() in ([1, 3, 0, 2], [3, 1, 2, 0], [1, 3, 2, 0])
    True
    """
    fair = shuffled(len(labels), seed, 0)
    if order == "random":
        return fair
    if order == "by_class":
        return fair[np.argsort(labels[fair], kind="stable")]
    return fair[np.argsort(_slots(labels[fair], concentration(order), seed), kind="stable")]


def concentration(order: str) -> float:
    """The number in `dirichlet(0.1)`; raises for what is no order at all."""
    found = re.fullmatch(r"dirichlet\((\d*\.?\d+)\)", str(order))
    if found is None or not float(found[1]) > 0:
        raise InputError(f"no order {order!r}{nearest(str(order), ORDERS)}")
    return float(found[1])


def check_order(order: str) -> None:
    """Raise an `InputError` unless this names an order."""
    if order not in ("random", "by_class"):
        concentration(order)


def _slots(labels: np.ndarray, concentration: float, seed: int) -> np.ndarray:
    """A stretch of time for every image."""
    generator = np.random.default_rng([seed, 1])
    slots = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        shares = generator.dirichlet(np.full(SLOTS, concentration))
        slots[places] = np.searchsorted(shares.cumsum()[:-1], (np.arange(len(places)) + 0.5) / len(places))
    return slots


def one_by_one(labels: np.ndarray, parts: int, order: str, seed: int, batch: int) -> list[tuple[np.ndarray, ...]]:
    """Batches (parts, places), one part of the images after another; no batch has images of two parts."""
    chunks = _chunks(order_of(labels, order, seed), batch)
    return [(np.full(len(chunk), part), chunk) for part in range(parts) for chunk in chunks]


def mixed(labels: np.ndarray, parts: int, order: str, seed: int, batch: int) -> list[tuple[np.ndarray, ...]]:
    """Batches (parts, places) of images that each come from one part, the parts in equal shares."""
    places = order_of(labels, order, seed)
    part_of = shuffled(len(labels), seed, 1) % parts
    return [(part_of[chunk], chunk) for chunk in _chunks(places, batch)]


def gather(images: Sequence[np.ndarray], parts: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The images at those places of those parts, uint8 (B, H, W, 3)."""
    first = images[int(parts[0])]
    if (parts == parts[0]).all():
        return np.ascontiguousarray(first[places])
    found = np.empty((len(places), *first.shape[1:]), first.dtype)
    for part in np.unique(parts):
        found[parts == part] = images[part][places[parts == part]]
    return found


def _chunks(places: np.ndarray, size: int) -> list[np.ndarray]:
    return [places[start : start + size] for start in range(0, len(places), size)]
