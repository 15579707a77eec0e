"""NOTE: for streams whose classes come in runs, normalise each image by itself and learn from a balanced memory.

Instance-aware BatchNorm uses an image's own statistics where they are surely not the source's (`norm.instance`). Every
64 images a step lowers the mean entropy H = -sum_k p_k log p_k of the remembered images, a random sample of each
predicted class, and moves the statistics of the layers by those of the memory.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ncttt.methods.base import Objective
from ncttt.methods.shared import mean_entropy, number_of_classes
from ncttt.methods.shared_memory import MemoryMethod, ReservoirMemory
from ncttt.methods.shared_teacher import Values, logits_with, moving_pass, statistics_of
from ncttt.model.branched import Branched
from ncttt.model.norm import Policy


class NormalisedMemory(ReservoirMemory):
    """The images, and the statistics that they have moved."""

    def __init__(self, capacity: int, shape: tuple[int, ...], classes: int, statistics: Values):
        super().__init__(capacity, shape, classes)
        self.statistics = statistics


@dataclass(frozen=True, kw_only=True)
class NOTE(MemoryMethod):
    """Entropy of a balanced memory, with instance-aware BatchNorm.

    `norm` is a pair: the steps compare an image's statistics with those of the memory, the prediction with those of the
    layers; the number is k, how many standard errors count as chance. The published figures belong to networks that
    were trained with such layers.
    """

    name: ClassVar[str] = "note"
    title: ClassVar[str] = "NOTE"
    place: ClassVar[float] = 49

    lr: float = 1e-4
    norm: Policy | tuple[Policy, Policy] = ("instance(4, 1)", "instance(4)")
    momentum: float = 0.01

    def memory(self, model: Branched) -> NormalisedMemory:
        shape, statistics = self.image_shape(model), Values(statistics_of(model))
        return NormalisedMemory(self.capacity, shape, number_of_classes(model), statistics)

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective | None:
        memory = _memory(model)
        if memory.waiting < self.every:
            return None
        return Objective(
            mean_entropy(moving_pass(model, memory.statistics, memory.images[memory.filled], self.momentum))
        )

    def predict(self, model: Branched, images: Tensor) -> Tensor:
        return logits_with(model, _memory(model).statistics.named(), images)


def _memory(model: Branched) -> NormalisedMemory:
    assert isinstance(model.memory, NormalisedMemory)
    return model.memory
