"""The order in which images come: shuffled, by class or in bursts of classes; a scenario at a time or all mixed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ncttt.base.errors import InputError, nearest
from ncttt.benchmark.shared_arrays import let_go
from ncttt.data.batching import shuffled

SPELLINGS = ("random", "by_class", "dirichlet(0.1)", "mixed", "mixed(by_class)", "mixed(dirichlet(0.1))")
SLOTS = 20  # stretches of time over which a Dirichlet order spreads each class
Batch = tuple[np.ndarray, np.ndarray]  # of each image: which scenario it is of, and its place there


def _random(labels: np.ndarray, seed: int) -> np.ndarray:
    return np.zeros(len(labels), np.int64)


def _by_class(labels: np.ndarray, seed: int) -> np.ndarray:
    return labels


def _dirichlet(labels: np.ndarray, seed: int, concentration: float) -> np.ndarray:
    generator = np.random.default_rng([seed, 1])
    slots = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        shares = generator.dirichlet(np.full(SLOTS, concentration))
        slots[places] = np.searchsorted(shares.cumsum()[:-1], (np.arange(len(places)) + 0.5) / len(places))
    return slots


# What shuffled images are sorted by, stably: a number for each, (N,).
ORDERS: dict[str, Callable[..., np.ndarray]] = {"random": _random, "by_class": _by_class, "dirichlet": _dirichlet}


@dataclass(frozen=True)
class Order:
    """How a stream is ordered: by a name of ORDERS with its number, if it has one, and whether scenarios are mixed."""

    name: str
    numbers: tuple[float, ...] = ()
    mixed: bool = False


def parse_order(text: str) -> Order:
    """The order that is called so; raises an `InputError` for what is none.

    >>> parse_order("mixed(dirichlet(0.1))")
    Order(name='dirichlet', numbers=(0.1,), mixed=True)
    """
    if text == "mixed(random)":  # one name for one thing: keys of cells have it in them
        raise InputError("the order 'mixed(random)' is called 'mixed'")
    mixed = re.fullmatch(r"mixed(?:\((.+)\))?", str(text))
    inner = (mixed[1] or "random") if mixed else str(text)
    numbered = re.fullmatch(r"dirichlet\((\d*\.?\d+)\)", inner)
    if numbered and float(numbered[1]) > 0:
        return Order("dirichlet", (float(numbered[1]),), mixed is not None)
    if inner in ("random", "by_class"):
        return Order(inner, mixed=mixed is not None)
    raise InputError(f"no order {text!r}{nearest(str(text), SPELLINGS)}")


def order_of(labels: np.ndarray, order: str, seed: int) -> np.ndarray:
    """The places 0 .. N - 1 of a scenario's images in the order of a stream.

    `random` is a fair shuffle; `by_class` shows one class after another; `dirichlet(c)` spreads each class unevenly
    over the stream, the more so the smaller the concentration c.

    >>> order_of(np.array([1, 0, 1, 0]), "by_class", seed=0).tolist() in ([1, 3, 0, 2], [3, 1, 2, 0], [1, 3, 2, 0])
    True
    """
    parsed, fair = parse_order(order), shuffled(len(labels), seed, 0)
    return fair[np.argsort(ORDERS[parsed.name](labels[fair], seed, *parsed.numbers), kind="stable")]


def batches_of(labels: np.ndarray, scenarios: int, order: str, seed: int, size: int) -> list[Batch]:
    """The batches of a stream through so many scenarios of the same images.

    The scenarios come one after another, and no batch has images of two; or, in a mixed order, each image comes once,
    in one of the scenarios, which have equal shares.
    """
    places = order_of(labels, order, seed)
    chunks = [places[start : start + size] for start in range(0, len(places), size)]
    if parse_order(order).mixed:
        scenario_of = shuffled(len(labels), seed, 1) % scenarios
        return [(scenario_of[chunk], chunk) for chunk in chunks]
    return [(np.full(len(chunk), scenario), chunk) for scenario in range(scenarios) for chunk in chunks]


@dataclass
class Stream:
    """The images of scenarios, each uint8 (N, H, W, 3), batch by batch as floats (B, 3, H, W)."""

    images: Sequence[np.ndarray]
    batches: list[Batch]
    device: str

    def __iter__(self) -> Iterator[Tensor]:
        for scenarios, places in self.batches:
            pixels = torch.from_numpy(_gathered(self.images, scenarios, places)).to(self.device)
            for images in self.images:
                let_go(images)
            yield pixels.permute(0, 3, 1, 2).float().div_(255)

    @property
    def scenarios(self) -> np.ndarray:
        """Which scenario each image comes from, (N,)."""
        return np.concatenate([scenarios for scenarios, _ in self.batches])

    @property
    def places(self) -> np.ndarray:
        """Where in its scenario each image is, (N,)."""
        return np.concatenate([places for _, places in self.batches])


def _gathered(images: Sequence[np.ndarray], scenarios: np.ndarray, places: np.ndarray) -> np.ndarray:
    first = images[int(scenarios[0])]
    if (scenarios == scenarios[0]).all():
        return np.ascontiguousarray(first[places])
    pixels = np.empty((len(places), *first.shape[1:]), first.dtype)
    for scenario in np.unique(scenarios):
        pixels[scenarios == scenario] = images[scenario][places[scenarios == scenario]]
    return pixels
