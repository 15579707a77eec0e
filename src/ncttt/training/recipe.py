"""A recipe: every setting of a training, with the defaults for two cores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ncttt.base.errors import InputError, nearest
from ncttt.base.numbers import MOST_THREADS, check_seed, check_whole
from ncttt.base.optimizers import OPTIMIZERS
from ncttt.training.schedules import SCHEDULES

# By name only, because the command line shows a recipe's help without waiting for torch.
AUGMENTATIONS = ("none", "pad_crop_flip", "pad_crop_flip_cutout", "resize_crop_flip")  # functions of ncttt.data.augment
PRECISIONS = ("float32", "bfloat16", "float16")  # types of torch


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train a classifier and its branch.

    Attributes:
        epochs: Passes over the training images.
        batch_size: Number of images in a step, over all processes together.
        branch: `joint` trains classifier and branch; `only` freezes the classifier. By default as the method needs.
        auxiliary_weight: Weight of the method's loss, added to the cross-entropy; by default the method's own.
        optimizer: Optimizer of the classifier: sgd, adam or adamw.
        lr: Highest learning rate of the classifier.
        momentum: Momentum of SGD.
        nesterov: Whether the momentum, if there is any, is Nesterov's.
        weight_decay: Weight decay of the classifier.
        branch_optimizer: Optimizer of the branch.
        branch_lr: Highest learning rate of the branch; it follows the same schedule.
        branch_weight_decay: Weight decay of the branch.
        schedule: Schedule of both learning rates: one_cycle, cosine, multi_step or constant.
        warmup: Share of the training during which one_cycle rises from zero.
        warmup_steps: Number of warm-up steps needed to reach `lr`. A shorter warm-up ends at a lower rate, because
            a training cannot recover from a steep rise; with 0 it always reaches `lr`. The branch reaches its own rate.
        milestones: Epochs after which multi_step lowers the rates.
        gamma: Factor by which multi_step lowers them.
        label_smoothing: Label smoothing of the cross-entropy.
        clip: Largest norm of the gradient; none by default.
        augment: none, pad_crop_flip, pad_crop_flip_cutout, resize_crop_flip (224 pixels), or a function of a batch.
        shrink: Size in pixels to which images are shrunk in the first part of the training, to save time; by default
            they are not.
        shrink_until: Share of the training during which images are shrunk.
        precision: float32, or bfloat16 or float16 for mixed precision on GPUs.
        fast: On a GPU, compute in TF32 and let cuDNN try which algorithms are fastest; results differ a little. On a
            processor it changes nothing.
        compile: Run the step through torch.compile.
        synchronise: Pool the moments of BatchNorm and whitening over all processes.
        workers: Threads that read images ahead.
        seed: Seed of the order of images, the augmentation and the noise.
    """

    epochs: int = 10
    batch_size: int = 128
    branch: Literal["joint", "only"] | None = None
    auxiliary_weight: float | None = None
    optimizer: str = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    branch_optimizer: str = "adamw"
    branch_lr: float = 2e-3
    branch_weight_decay: float = 0.01
    schedule: str = "one_cycle"
    warmup: float = 0.2
    warmup_steps: int = 50
    milestones: tuple[int, ...] = ()
    gamma: float = 0.1
    label_smoothing: float = 0.0
    clip: float | None = None
    augment: str | Callable[..., Any] = "none"
    shrink: int | None = None
    shrink_until: float = 0.65
    precision: str = "float32"
    fast: bool = False
    compile: bool = False
    synchronise: bool = False
    workers: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "milestones", tuple(self.milestones))
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if not callable(value) and value not in known:
                raise InputError(f"no {name} {value!r}{nearest(str(value), [k for k in known if k])}")
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive; found {getattr(self, name)!r}")
        for name in _RATIOS:
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be finite and not negative; found {getattr(self, name)!r}")
        if self.shrink is not None and self.shrink < 1:
            raise InputError(f"shrink must be a size in pixels, or none; found {self.shrink!r}")
        for name, limit in {"label_smoothing": 1, "warmup": 1, "momentum": 1}.items():
            if getattr(self, name) >= limit:
                raise InputError(f"{name} must be below {limit}; found {getattr(self, name)!r}")
        if self.auxiliary_weight is not None and not 0 <= self.auxiliary_weight < float("inf"):
            raise InputError(f"auxiliary_weight must be finite and not negative; found {self.auxiliary_weight!r}")
        if self.clip is not None and not self.clip > 0:
            raise InputError(f"clip must be positive, or none; found {self.clip!r}")
        check_seed("seed", self.seed)
        check_whole("workers", self.workers, 0, MOST_THREADS)

    def settings(self) -> dict[str, Any]:
        """The recipe as JSON values; a function of the caller's own by its name."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["milestones"] = list(self.milestones)
        if callable(self.augment):
            values["augment"] = getattr(self.augment, "__qualname__", type(self.augment).__qualname__)
        return values

    def but(self, **settings: Any) -> Recipe:
        """The recipe with some settings changed; an unknown one is an error that names the nearest."""
        known = [f.name for f in dataclasses.fields(self)]
        for name in settings:
            if name not in known:
                raise InputError(f"a recipe has no setting {name!r}{nearest(name, known)}")
        return dataclasses.replace(self, **settings)


_CHOICES: dict[str, Any] = {
    "branch": ("joint", "only", None),
    "optimizer": OPTIMIZERS,
    "branch_optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
    "augment": AUGMENTATIONS,
    "precision": PRECISIONS,
}
_POSITIVE = ("epochs", "batch_size", "lr", "branch_lr", "gamma")
_RATIOS = (
    "weight_decay",
    "branch_weight_decay",
    "momentum",
    "label_smoothing",
    "warmup",
    "warmup_steps",
    "shrink_until",
)
