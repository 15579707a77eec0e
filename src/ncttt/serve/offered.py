"""What is offered: the facts about a model that is served which its routes need; the model itself may be elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from ncttt.adapt.arguments import Stop
from ncttt.adapt.protocols import Protocol
from ncttt.methods import Method


@dataclass
class Offered:
    """Images of which size go in, predictions of which classes come out, and how the model adapts."""

    size: int
    resize: str
    classes: tuple[str, ...]
    protocol: Protocol
    method: Method
    stop: Stop
