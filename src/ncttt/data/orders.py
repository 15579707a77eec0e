"""The order in which the images of a domain come: as given, shuffled, by class or in bursts of classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ncttt.base.errors import InputError, nearest
from ncttt.data.shuffling import shuffled

SPELLINGS = ("random", "given", "by_class", "dirichlet(0.1)", "mixed", "mixed(by_class)", "mixed(dirichlet(0.1))")
SLOTS = 20  # stretches of time over which a Dirichlet order spreads each class


def _random(labels: np.ndarray, seed: list[int]) -> np.ndarray:
    return np.zeros(len(labels), np.int64)


def _by_class(labels: np.ndarray, seed: list[int]) -> np.ndarray:
    return labels


def _dirichlet(labels: np.ndarray, seed: list[int], concentration: float) -> np.ndarray:
    generator = np.random.default_rng(seed)
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
    """How images come: `given`, or by a name of ORDERS with its number, if any, and whether domains are mixed."""

    name: str
    numbers: tuple[float, ...] = ()
    mixed: bool = False

    @property
    def needs_labels(self) -> bool:
        """Whether it follows the classes of images."""
        return self.name in ("by_class", "dirichlet")


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
    if inner in ("random", "by_class") or (inner == "given" and not mixed):
        return Order(inner, mixed=mixed is not None)
    raise InputError(f"no order {text!r}{nearest(str(text), SPELLINGS)}")


def order_of(labels: np.ndarray, order: str, seed: int, visit: int = 0) -> np.ndarray:
    """The places 0 .. N - 1 of a domain's images in the order of a stream; a later visit has another one.

    `random` is a fair shuffle; `given` leaves images as they are; `by_class` shows one class after another;
    `dirichlet(c)` spreads each class unevenly over the stream, the more so the smaller the concentration c.

    >>> order_of(np.array([1, 0, 1, 0]), "by_class", seed=0).tolist() in ([1, 3, 0, 2], [3, 1, 2, 0], [1, 3, 2, 0])
    True
    """
    parsed = parse_order(order)
    if parsed.name == "given":
        return np.arange(len(labels))
    fair = shuffled(len(labels), seed, visit + 1 if visit else 0)  # epoch 1 shares images out to domains
    bursts = [seed, 1, visit] if visit else [seed, 1]
    return fair[np.argsort(ORDERS[parsed.name](labels[fair], bursts, *parsed.numbers), kind="stable")]
