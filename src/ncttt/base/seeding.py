"""Random numbers of one's own: seeded for a while, and the global state comes back afterwards.

PyTorch's global generators belong to all threads. An adaptation therefore has generators of its own, for its thread
alone, and seeds the global ones, under a lock, only as long as something in it is known to draw from them: somebody
else's method, or a model that draws in evaluation mode.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_alone = threading.RLock()  # held while the global generators are seeded for a batch
_of_thread = threading.local()


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed the generators of the CPU and of `device` inside the `with` block; those of other GPUs are left alone.

    >>> with seeded(3):
    ...     first = torch.rand(1)
    >>> with seeded(3):
    ...     assert torch.equal(torch.rand(1), first)
    """
    device = torch.device(device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def seeded_alone(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """The same, while no other thread does so; for short blocks."""
    with _alone, seeded(seed, device):
        yield


def own_generator(device: torch.device | str = "cpu") -> torch.Generator | None:
    """The generator to draw from: that of the adaptation in this thread, or None, for PyTorch's global one.

    >>> with Draws().seeded(3):
    ...     first = torch.rand(1, generator=own_generator())
    >>> with seeded(3):
    ...     assert torch.equal(torch.rand(1, generator=own_generator()), first)
    """
    return getattr(_of_thread, "generators", {}).get(torch.device(device).type)


class Draws:
    """The random numbers of one adapter.

    `whole` is set once a batch has gone all the way, so that whoever draws from the global generators has done it.
    """

    def __init__(self) -> None:
        self.whole = False
        self._from_global = True  # until a whole batch shows that nobody does

    @contextmanager
    def seeded(self, seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
        """Seed what is drawn in this thread inside the `with` block; the global generators are then as before."""
        device = torch.device(device)
        with _generators(seed, device):
            if not self._from_global:
                yield from self._watched(device)
                return
            with seeded_alone(seed, device):
                yield from self._watched(device)

    def _watched(self, device: torch.device) -> Iterator[None]:
        before = _states(device)
        yield
        drawn = any(not torch.equal(*pair) for pair in zip(before, _states(device), strict=True))
        self._from_global = drawn or not self.whole


@contextmanager
def _generators(seed: int, device: torch.device) -> Iterator[None]:
    before = getattr(_of_thread, "generators", {})
    kinds = {"cpu": torch.device("cpu"), device.type: device}
    _of_thread.generators = {
        name: torch.Generator(kind).manual_seed(seed) for name, kind in kinds.items() if name in ("cpu", "cuda")
    }
    try:
        yield
    finally:
        _of_thread.generators = before


def _states(device: torch.device) -> list[torch.Tensor]:
    states = [torch.default_generator.get_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states
