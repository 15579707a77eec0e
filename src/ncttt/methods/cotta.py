"""CoTTA: learn from a teacher, a moving mean of the network that adapts, and go back to the source here and there.

With s the student's softmax and t the teacher's, the loss is the mean over images of -sum_k t_k log s_k. Where the
source model's mean confidence in the batch is below a threshold, t is the mean of the teacher's softmax over
augmentations. After each step the teacher follows the student by 1 - 0.999, and each weight of the student is put back
to the source's with a small probability. The teacher predicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.base.seeding import own_generator
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import check_whole, every_parameter, need_pixels
from ncttt.methods.shared_augment import strong_views
from ncttt.methods.shared_teacher import Values, cross_entropies, logits_with
from ncttt.model.branched import Branched
from ncttt.model.norm import Policy, aside


@dataclass(frozen=True, kw_only=True)
class CoTTA(Method):
    """A teacher whose predictions are averaged over augmentations; meant for a long stream (`protocol="continual"`).

    `kept`: how much of itself the teacher keeps at each step. `views`: augmentations of each image, which are made only
    where the source model's mean confidence in the batch is below `threshold`. `restored`: the probability that a
    weight goes back to the source's after a step. The prediction is that of the teacher from before the last step, so
    it costs no further forward.
    """

    name: ClassVar[str] = "cotta"
    title: ClassVar[str] = "CoTTA"
    place: ClassVar[float] = 47
    learns: ClassVar[bool] = True

    steps: int = 1
    lr: float = 1e-3
    norm: Policy | tuple[Policy, Policy] = "batch"
    kept: float = 0.999
    views: int = 32
    threshold: float = 0.92
    restored: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, views=1)
        for field in ("kept", "threshold", "restored"):
            if not 0 <= getattr(self, field) <= 1:
                raise InputError(f"{field} must be a number from 0 to 1; found {getattr(self, field)!r}")

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return every_parameter(model)

    def memory(self, model: Branched) -> Values:
        """The teacher."""
        return Values(self.parameters(model))

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        logits = model(images)
        with torch.no_grad():
            taught = self._taught(model, images)
        return Objective(cross_entropies(logits, taught).mean(), logits=taught)

    def after_step(self, model: Branched) -> None:
        parameters = self.parameters(model)
        _teacher(model).follow(parameters, 1 - self.kept)
        for name, source in model.source_parameters().items():
            draws = torch.rand(source.shape, generator=own_generator(source.device), device=source.device)
            parameters[name].copy_(torch.where(draws < self.restored, source, parameters[name]))

    def predict(self, model: Branched, images: Tensor) -> Tensor:
        return logits_with(model, _teacher(model).named(), images)

    def _taught(self, model: Branched, images: Tensor) -> Tensor:
        """The teacher's logits; over augmentations those of the mean probability, where the source model is unsure."""
        layers, teacher = model.batch_norms(), _teacher(model).named()
        with aside(layers):
            confidence = logits_with(model, model.source_parameters(), images).softmax(1).amax(1).mean()
        if confidence >= self.threshold:
            with aside(layers):
                return logits_with(model, teacher, images)
        need_pixels(model, images, "the augmentations of CoTTA")
        rows = []
        for _ in range(self.views):
            with aside(layers):
                rows.append(logits_with(model, teacher, strong_views(images)))
        return mean_prediction(rows)


def mean_prediction(logits: Sequence[Tensor]) -> Tensor:
    """Logits `(B, classes)` of the mean probability over views, each of whose logits `(B, classes)` are given.

    >>> mean_prediction([torch.tensor([[0.0, 9.0]]), torch.tensor([[9.0, 0.0]])]).exp()
    tensor([[0.5000, 0.5000]])
    """
    return torch.stack([view.log_softmax(1) for view in logits]).logsumexp(0) - log(len(logits))


def _teacher(model: Branched) -> Values:
    assert isinstance(model.memory, Values)
    return model.memory
