"""Protocols: when an adapter forgets what it has learned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from ncttt.base.registry import Registry


@dataclass(frozen=True)
class Protocol:
    """Forgets after each batch, at each new domain (a corruption, a folder), or never."""

    name: str
    forgets: Literal["batch", "domain", "never"]

    @property
    def remembers(self) -> bool:
        """Whether batches share what was learned."""
        return self.forgets != "batch"


_BUILT_IN = (Protocol("episodic", "batch"), Protocol("online", "domain"), Protocol("continual", "never"))

PROTOCOLS: Registry[Protocol] = Registry(
    "protocol", "ncttt.protocols", lambda: {protocol.name: partial(_itself, protocol) for protocol in _BUILT_IN}
)


def _itself(protocol: Protocol) -> Protocol:
    return protocol
