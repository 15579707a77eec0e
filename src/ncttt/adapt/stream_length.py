"""Whether a stream is long enough for what a method remembers: its memory, a group to learn from, a window.

A method sees so many images until its protocol forgets. With fewer than it waits for, it never learns.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncttt.adapt.protocols import Protocol
from ncttt.methods.base import Method
from ncttt.model.norm import Policy
from ncttt.model.policies import window_size

Sizes = Sequence[int]  # of the batches of a domain, or of all until a protocol forgets


def too_short(
    method: Method, norm: Policy | tuple[Policy, Policy], protocol: Protocol, domains: Sequence[Sizes]
) -> str | None:
    """What a stream is too short for, in one sentence that says what to do; None if it is long enough.

    `domains` are the sizes of the batches of each domain. `norm` is the statistics policy, or the pair of them.

    >>> from ncttt.adapt.protocols import ONLINE
    >>> from ncttt.methods import NOTE, PTBN
    >>> too_short(PTBN(), "window(64)", ONLINE, [[16, 16]])[:57]
    "'window(64)' takes the statistics of the last 64 images, "
    >>> too_short(NOTE(), NOTE().norm, ONLINE, [[64, 64]]) is None
    True
    """
    stretches = stretches_of(protocol, domains)
    longest = max(map(sum, stretches))
    if method.learns_from == "memory" and method.steps:
        # By their names, which all methods with a memory of images share: nobody else waits for the module of these.
        every, capacity = (getattr(method, name, 1) for name in ("every", "capacity"))
        before = max(sum(sizes[:-1]) for sizes in stretches)
        if before < every:
            return _never_learns(method, every, protocol, longest, before)
        if longest < capacity:
            return (
                f"{method.title} has a memory of {capacity} images (capacity), which "
                f"{_until(protocol, longest)} can never fill: use capacity={longest} or less, or more images"
            )
    if method.gather > longest and method.steps:
        return (
            f"gather={method.gather} waits for so many images to learn from, and {_until(protocol, longest)} are "
            f"fewer, so it never learns: use gather={longest} or less, or more images"
        )
    for policy in (norm,) if isinstance(norm, str) else norm:
        window = window_size(policy)
        if window is not None and longest < window:
            return (
                f"{policy!r} takes the statistics of the last {window} images, which {_until(protocol, longest)} can "
                f"never fill: use 'window({longest})' or less, or more images"
            )
    return None


def stretches_of(protocol: Protocol, domains: Sequence[Sizes]) -> list[Sizes]:
    """The sizes of the batches that come until the protocol forgets, stretch by stretch.

    >>> from ncttt.adapt.protocols import EPISODIC, ONLINE, CONTINUAL
    >>> [stretches_of(protocol, [[4, 2], [4]]) for protocol in (EPISODIC, ONLINE, CONTINUAL)]
    [[[4], [2], [4]], [[4, 2], [4]], [[4, 2, 4]]]
    """
    joined = [list(sizes) for sizes in domains] if protocol.domains else [[size for sizes in domains for size in sizes]]
    if protocol.batches is None:
        return list(joined)
    count = protocol.batches
    return [sizes[start : start + count] for sizes in joined for start in range(0, len(sizes), count)]


def _never_learns(method: Method, every: int, protocol: Protocol, longest: int, before: int) -> str:
    if not protocol.remembers:
        return (
            f"{method.title} learns from images that it remembers, and the protocol {protocol.name!r} forgets after "
            "each batch, so it never learns: use 'online' or 'continual'"
        )
    return (
        f"{method.title} takes a step after each {every} images (every), and of "
        f"{_until(protocol, longest)} {before} come before the last batch, so it never learns: use every={before or 1} "
        "or less, smaller batches or more images"
    )


def _until(protocol: Protocol, longest: int) -> str:
    forgets = protocol.batches is not None or protocol.domains
    return f"the {longest} images until the protocol {protocol.name!r} forgets" if forgets else f"the {longest} images"
