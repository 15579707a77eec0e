"""Random numbers of one's own: seeded for a while, and the global state comes back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
