"""PTBN: prediction-time batch normalisation, which uses the test batch's statistics and learns nothing."""

from dataclasses import dataclass
from typing import ClassVar

from ncttt.methods.base import Method
from ncttt.model.norm import Policy


@dataclass(frozen=True, kw_only=True)
class PTBN(Method):
    """Batch statistics in every BatchNorm of the classifier; `norm="blend(0.6)"` mixes them with the source's."""

    name: ClassVar[str] = "ptbn"
    title: ClassVar[str] = "PTBN"
    place: ClassVar[float] = 30
    norm: Policy | tuple[Policy, Policy] = "batch"
