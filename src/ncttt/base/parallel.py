"""What the processes of one training share: moments over the whole batch, and random draws that fit together.

Outside of a distributed training every function here does the plain thing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, distributed

from ncttt.base.seeding import own_generator


@dataclass(frozen=True)
class Share:
    """This process's part of a batch, and the generator that is in the same state in all processes."""

    generator: Generator
    rank: int = 0
    world: int = 1
    synchronised: bool = False


_share: Share | None = None


@contextmanager
def sharing(share: Share) -> Iterator[None]:
    """Make `draw`, `mean_over_processes` and `processes` speak of this share inside the `with` block."""
    global _share
    before, _share = _share, share
    try:
        yield
    finally:
        _share = before


def processes() -> int:
    """How many processes pool their moments: one, unless the training synchronises them."""
    return _share.world if _share is not None and _share.synchronised else 1


def mean_over_processes(local: Tensor) -> Tensor:
    """The mean of a tensor over the processes that pool their moments; gradients flow to all of them."""
    return local if processes() == 1 else _Sum.apply(local) / processes()


class _Sum(torch.autograd.Function):
    """The sum over all processes; what each adds to the loss of all of them comes back."""

    @staticmethod
    def forward(ctx: Any, local: Tensor) -> Tensor:
        total = local.contiguous().clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total)
        return total


def draw(sample: Callable[[Tensor, Generator | None], Tensor], like: Tensor, dim: int = 0) -> Tensor:
    """`sample(like, generator)`, of which each process keeps what one process would draw for its images.

    `dim` counts the images of the batch. Every process draws for all of them, from the generator they have in common.
    """
    own = own_generator(like.device)
    if own is not None or _share is None:
        return sample(like, own)
    if _share.world == 1:
        return sample(like, _share.generator)
    whole = torch.cat([like] * _share.world, dim)
    images = torch.arange(_share.rank, whole.shape[dim], _share.world, device=like.device)
    return sample(whole, _share.generator).index_select(dim, images)
