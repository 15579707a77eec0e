"""RoTTA: for streams whose images are alike for a while, learn from a balanced memory, and from a slow teacher.

Every 64 images a step on the memory: with t the teacher's softmax of a remembered image, s the student's of a strong
augmentation of it, and a its age as a share of the memory's size, the loss is the mean over images of
-sigmoid(-a) sum_k t_k log s_k. Statistics are a moving mean, which each step moves by those of the memory. The teacher
predicts.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.methods.base import Objective
from ncttt.methods.shared import need_pixels
from ncttt.methods.shared_augment import strong_views
from ncttt.methods.shared_memory import AgedMemory, MemoryMethod
from ncttt.methods.shared_teacher import Values, cross_entropies, logits_with, moving_pass, statistics_of
from ncttt.model.branched import Branched
from ncttt.model.norm import Policy, aside


class TaughtMemory(AgedMemory):
    """The images, the teacher with statistics of its own, and the student's statistics."""

    def __init__(self, capacity: int, shape: tuple[int, ...], teacher: Values, student: Values):
        super().__init__(capacity, shape)
        self.teacher, self.student = teacher, student


@dataclass(frozen=True, kw_only=True)
class RoTTA(MemoryMethod):
    """Robust adaptation to a stream that drifts and whose classes come in runs.

    `kept`: how much of itself the teacher keeps at each step. `norm` is a pair: the steps normalise by the moving mean
    moved by the batch, and the prediction by the moving mean as it stands.
    """

    name: ClassVar[str] = "rotta"
    title: ClassVar[str] = "RoTTA"
    place: ClassVar[float] = 48

    lr: float = 1e-3
    norm: Policy | tuple[Policy, Policy] = ("blend(0.05)", "source")
    kept: float = 0.999

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.kept <= 1:
            raise InputError(f"kept must be a number from 0 to 1; found {self.kept!r}")

    def memory(self, model: Branched) -> TaughtMemory:
        statistics = statistics_of(model)
        teacher = Values(self.parameters(model) | statistics)
        return TaughtMemory(self.capacity, self.image_shape(model), teacher, Values(statistics))

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective | None:
        memory = _memory(model)
        if memory.waiting < self.every:
            return None
        kept = memory.images[memory.filled]
        need_pixels(model, kept, "the augmentations of RoTTA")
        with torch.no_grad(), aside(model.batch_norms()):
            taught = moving_pass(model, memory.teacher, kept, self.momentum)
        logits = moving_pass(model, memory.student, strong_views(kept), self.momentum)
        weights = (-memory.ages[memory.filled] / self.capacity).to(logits).sigmoid()
        return Objective((weights * cross_entropies(logits, taught)).mean())

    def after_step(self, model: Branched) -> None:
        _memory(model).teacher.follow(self.parameters(model), 1 - self.kept)

    def predict(self, model: Branched, images: Tensor) -> Tensor:
        return logits_with(model, _memory(model).teacher.named(), images)


def _memory(model: Branched) -> TaughtMemory:
    assert isinstance(model.memory, TaughtMemory)
    return model.memory
