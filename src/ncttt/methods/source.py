"""Source: the classifier as it was trained, the baseline of every comparison."""

from dataclasses import dataclass
from typing import ClassVar

from ncttt.methods.base import Method


@dataclass(frozen=True, kw_only=True)
class Source(Method):
    """No adaptation at all."""

    name: ClassVar[str] = "source"
    title: ClassVar[str] = "Source"
    place: ClassVar[float] = 10
