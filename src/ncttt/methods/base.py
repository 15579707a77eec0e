"""The contract of a method: hyper-parameters, and a few small functions that the Adapter and the training call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.base.optimizers import check_optimizer
from ncttt.methods.registry import needs_by_default
from ncttt.model.branched import Branched, Features
from ncttt.model.norm import Policy, batch_share


class Objective(NamedTuple):
    """What an adaptation step lowers, and, where the method has one, the per-image score `(B,)` of the same pass.

    With `logits`, those of the same pass, the method predicts what it saw before the step, without another forward. A
    loss of None says that there is nothing to learn, and still gives the logits. The step has `pace` times the learning
    rate; a pace of zero says that the batch is like source images, and ends the steps.
    """

    loss: Tensor | None
    score: Tensor | None = None
    logits: Tensor | None = None
    pace: Tensor | None = None


class Prediction(NamedTuple):
    """Logits `(B, classes)`, where there is one the score `(B,)`, and what the method saw on the way.

    `seen` is what a method with a memory wants to `remember` of the pass that predicted, such as features.
    """

    logits: Tensor
    score: Tensor | None = None
    seen: Any = None


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to adapt at test time, as frozen hyper-parameters; what changes lives in the branch and in the memory.

    A subclass says by class variables its `name`, the `title` that figures show and its `place` in tables (methods
    without one come last), whether it has a branch, which settings the branch is built from, whether it learns at test
    time, and whether its branch is trained with the classifier (`joint`), after it (`branch`) or not at all
    (`nothing`): then it holds facts that `calibrate` takes from source images, and any classifier will do. `needs` says
    in plain words what the method needs of the source beside the classifier; it is shown wherever methods are listed.
    A method that `learns_from` its memory alone takes steps whatever the size of a batch is.
    `norm` is the BatchNorm policy of the classifier, or a pair: one for the gradient passes, one for the prediction.
    `auxiliary_weight` is the weight of `training_loss` beside the cross-entropy in joint training. A step lowers the
    loss of so many `copies` of the batch together, the images first, the others shifted by a few pixels and, if
    `mirrored`, every other one mirrored: more to learn from, at that many times the cost. With a `crop` below one every
    copy is a part of the images, with that share of their sides, which costs less; a network that takes images of one
    size alone gets whole copies. With `mirror_mean` and `mirrored` a prediction is the mean of the probabilities of an
    image and of its mirror image. Where batches are small, `gather` lets a stream take its steps on groups of at least
    so many images, which wait until there are enough, each predicted when it comes; 0 learns from each batch by itself.
    `added` are the settings that it got after checkpoints and rows had been made without them, each with the value that
    it has there.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    place: ClassVar[float] = float("inf")
    has_branch: ClassVar[bool] = False
    learns: ClassVar[bool] = False
    learns_from: ClassVar[Literal["batch", "memory"]] = "batch"
    trains: ClassVar[Literal["joint", "branch", "nothing"]] = "joint"
    needs: ClassVar[str] = "nothing"
    branch_settings: ClassVar[tuple[str, ...]] = ()
    added: ClassVar[Mapping[str, Any]] = {}

    steps: int = 0
    lr: float = 0.0
    optimizer: str = "adam"
    norm: Policy | tuple[Policy, Policy] = "source"
    auxiliary_weight: float = 1.0
    copies: int = 1
    mirrored: bool = True
    crop: float = 1.0
    mirror_mean: bool = False
    gather: int = 0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "needs" not in vars(cls):
            cls.needs = needs_by_default(cls.has_branch, cls.trains, cls.needs)

    def __post_init__(self) -> None:
        for field in ("steps", "lr", "auxiliary_weight"):
            if not 0 <= getattr(self, field) < float("inf"):
                raise InputError(f"{field} must be finite and not negative; found {getattr(self, field)!r}")
        if not isinstance(self.copies, int) or self.copies < 1:
            raise InputError(f"copies must be a whole number of at least 1; found {self.copies!r}")
        if not 0 < self.crop <= 1:
            raise InputError(f"crop must be above 0 and at most 1; found {self.crop!r}")
        if isinstance(self.gather, bool) or not isinstance(self.gather, int) or self.gather < 0:
            raise InputError(f"gather must be a whole number of images, or 0 for none; found {self.gather!r}")
        check_optimizer(self.optimizer)
        for policy in (self.norm,) if isinstance(self.norm, str) else self.norm:
            batch_share(policy)

    @classmethod
    def needs_training(cls) -> bool:
        """Whether it runs only on models that were trained for it."""
        return cls.has_branch and cls.trains != "nothing"

    @property
    def looks_twice(self) -> bool:
        """Whether a prediction is the mean over an image and its mirror image."""
        return self.mirror_mean and self.mirrored

    @property
    def gradient_norm(self) -> Policy:
        """The statistics policy of the gradient passes."""
        return self.norm if isinstance(self.norm, str) else self.norm[0]

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> nn.Module | None:
        """The auxiliary branch for features and logits like those of the example batch; none by default."""
        return None

    def training_loss(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> Tensor | None:
        """The auxiliary loss of joint training; features and logits come from the one joint pass."""
        return None

    def calibrate(self, model: Branched, batches: Iterable[Tensor | Sequence[Tensor]]) -> None:
        """Store in the branch what the method must remember of held-out source images; nothing by default."""

    def forget(self, model: Branched) -> None:
        """Undo `calibrate`, because the weights are about to change; nothing by default."""

    def health(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> dict[str, Tensor]:
        """Figures of one batch of held-out source images that tell whether the branch has learned; none by default.

        Each is a scalar; `auxiliary`, the training loss itself, is measured by the training and need not be repeated.
        """
        return {}

    def warnings(self, health: Mapping[str, float]) -> list[str]:
        """What is wrong with a branch of this health, a sentence each, because then adaptation cannot help."""
        return []

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        """The classifier's parameters that adaptation moves, by name; none by default."""
        return {}

    def buffers(self, model: Branched) -> dict[str, Tensor]:
        """The branch's buffers that adaptation moves, by name; none by default."""
        return {}

    def memory(self, model: Branched) -> nn.Module | None:
        """What the method keeps of past images, as a module whose tensors have fixed shapes; none by default.

        An `Adapter` makes one and keeps it as `model.memory`; `adaptation_loss`, `after_step` and `remember` may change
        its tensors, in place. A reset, the guard and a saved state treat them like all that moves.
        """
        return None

    def remember(self, model: Branched, images: Tensor, prediction: Prediction) -> None:
        """Change `model.memory` by a batch that was just predicted, once, without a gradient; nothing by default."""

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective | None:
        """The loss that a step on these images lowers; None where there is nothing to learn from yet.

        A method may learn from its memory instead of the images, which come into the memory after their prediction.
        """
        raise NotImplementedError(f"{type(self).__name__} has nothing to learn at test time")

    def after_step(self, model: Branched) -> None:
        """Change what moves, or the memory, after each step, in place and without a gradient; nothing by default.

        `model.source_parameters()` are the source's values of what moves, to draw it back to them.
        """

    def forgets(self, model: Branched) -> bool:
        """Whether to send the stream back to its beginning, asked once after each batch of a stream; no by default.

        What moves, the optimizer and the memory are then as before the first batch; the random numbers go on.
        """
        return False

    def score(self, model: Branched, features: Features, logits: Tensor) -> Tensor | None:
        """Per-image in-distribution probability `(B,)` under the branch; none by default."""
        return None

    def source_level(self, model: Branched, images: int) -> float | None:
        """The mean score at which a batch of so many images counts as source; None before calibration."""
        return None

    def tells_source(self, model: Branched) -> bool:
        """Whether, as far as calibration knows, the score can tell source images from others; yes by default."""
        return True

    def predict(self, model: Branched, images: Tensor) -> Tensor | Prediction:
        """Logits `(B, classes)` of the model as it stands, which it leaves as it is; or a whole `Prediction`."""
        return model(images)
