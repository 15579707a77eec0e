"""Protocols: when an adapter forgets, that is goes back to source parameters, a fresh optimizer and its first seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ncttt.base.errors import InputError
from ncttt.base.registry import Registry


@dataclass(frozen=True)
class Protocol:
    """What an adapter keeps of the batches before: nothing, those of the same domain, or all.

    It forgets after every `batches` batches, if that is a number, and at each new domain, if `domains`; a subclass may
    decide otherwise in `forgets_after`.

    >>> [batch for batch in range(1, 10) if Protocol("threes", "forgets after three batches", 3).forgets_after(batch)]
    [3, 6, 9]
    """

    name: str
    title: str
    batches: int | None = None
    domains: bool = False

    def __post_init__(self) -> None:
        if self.batches is not None and (not isinstance(self.batches, int) or self.batches < 1):
            raise InputError(f"a protocol forgets after a whole number of batches from 1; found {self.batches!r}")

    @property
    def remembers(self) -> bool:
        """Whether a batch can depend on those before it."""
        return self.batches != 1

    @property
    def crosses_domains(self) -> bool:
        """Whether it keeps something of one domain in the next, so that their sequence is one stream."""
        return self.remembers and not self.domains

    def forgets_after(self, batch: int) -> bool:
        """Whether to forget after this batch, the first being number 1; asked once a batch."""
        return self.batches is not None and batch % self.batches == 0


EPISODIC = Protocol("episodic", "forgets after each batch", batches=1)
ONLINE = Protocol("online", "forgets at each new domain", domains=True)
CONTINUAL = Protocol("continual", "never forgets")


def _built_in() -> dict[str, Callable[[], Protocol]]:
    """The protocols of this file, in their order."""
    protocols = [thing for thing in globals().values() if isinstance(thing, Protocol)]
    return {protocol.name: lambda protocol=protocol: protocol for protocol in protocols}


def _check(name: str, thing: Any) -> None:
    if not isinstance(thing, Protocol):
        raise InputError(f"{name!r} is no protocol: expected an ncttt.adapt.Protocol; found {thing!r}")


PROTOCOLS: Registry[Protocol] = Registry("protocol", "ncttt.protocols", _built_in, _check)


def protocol_of(protocol: str | Protocol) -> Protocol:
    """The protocol of that name or address; a protocol passes through."""
    return protocol if isinstance(protocol, Protocol) else PROTOCOLS.find(str(protocol))
