"""TTT++: contrast two views of each test image, and align mean and covariance of the features with the source's.

The loss is SimCLR's on projections of the views, scaled as the authors scale it, plus the distances of `moments` for
the un-augmented images, at the encoder's output and at the projection. Source images are needed once, by `calibrate`,
never at test time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import moved_parameters, own_pass
from ncttt.methods.ttt_plus.branch import (
    ContrastBranch,
    contrast_branch,
    contrastive_accuracy,
    contrastive_loss,
    project_views,
)
from ncttt.model.branched import Branched, Features
from ncttt.model.modes import evaluating
from ncttt.model.norm import Policy

WEIGHTS = ("contrastive_weight", "feature_weight", "projection_weight")


@dataclass(frozen=True, kw_only=True)
class TTTPlus(Method):
    """Contrastive learning and feature alignment.

    `channels`, `hidden`: of the projection head. `temperature`: of the contrastive loss, which is multiplied by
    temperature / `base_temperature`, as in the authors' code; None leaves SimCLR's. The three weights: of that loss and
    of the alignment of features and of projections; what has weight 0 is not computed. `queue`: how many of the newest
    test features are aligned, the batch's own among them; it fills up along a stream, and an episodic call sees its
    batch alone. `moves`: `encoder`, `norm` or a layer's name, for everything up to and including it.
    """

    name: ClassVar[str] = "ttt_plus"
    title: ClassVar[str] = "TTT++"
    place: ClassVar[float] = 60
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    branch_settings = ("channels", "hidden")
    added: ClassVar[Mapping[str, Any]] = {"base_temperature": None}

    steps: int = 10
    lr: float = 1e-2
    optimizer: str = "sgd"
    norm: Policy | tuple[Policy, Policy] = "batch"
    channels: int = 128
    hidden: int = 512
    temperature: float = 0.5
    base_temperature: float | None = 0.07
    contrastive_weight: float = 1.0
    feature_weight: float = 0.05
    projection_weight: float = 0.2
    queue: int = 1536
    moves: str = "encoder"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, least in {"channels": 1, "hidden": 1, "queue": 0}.items():
            value = getattr(self, field)
            if not isinstance(value, int) or value < least:
                raise InputError(f"{field} must be a whole number of at least {least}; found {value!r}")
        weights = [getattr(self, field) for field in WEIGHTS]
        if not all(0 <= weight < float("inf") for weight in weights) or not any(weights):
            raise InputError(f"{', '.join(WEIGHTS)} must not be negative, and one must be positive; found {weights}")
        if not self.temperature > 0:
            raise InputError(f"temperature must be positive; found {self.temperature!r}")
        if self.base_temperature is not None and not self.base_temperature > 0:
            raise InputError(f"base_temperature must be positive, or None; found {self.base_temperature!r}")

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> ContrastBranch:
        return ContrastBranch(features, channels=self.channels, hidden=self.hidden, queue=self.queue)

    def training_loss(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> Tensor:
        with own_pass(model):
            return self._contrastive_loss(model, images)

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        """Two passes: views have other batch statistics than images, of which the source's moments are."""
        loss = images.new_zeros(())
        if self.contrastive_weight:
            loss = self.contrastive_weight * self._contrastive_loss(model, images)
        if self._aligns:
            of_features, of_projections = contrast_branch(model).alignments(self._test_rows(model, images))
            loss = loss + self.feature_weight * of_features + self.projection_weight * of_projections
        return Objective(loss)

    @torch.no_grad()
    def calibrate(self, model: Branched, batches: Iterable[Tensor | Sequence[Tensor]]) -> None:
        """Remember the moments of source images; labels, if there are any, are not looked at."""
        branch, rows = contrast_branch(model), []
        with evaluating(model), own_pass(model):
            for batch in batches:
                images = batch if isinstance(batch, Tensor) else batch[0]
                model.check_images(images)
                rows.append(branch.rows(model.features(images.to(model.mean))))
        if sum(map(len, rows)) < 2:
            raise InputError("calibration needs at least two source images; found fewer")
        branch.remember(torch.cat(rows))

    def forget(self, model: Branched) -> None:
        contrast_branch(model).forget()

    @torch.no_grad()
    def health(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> dict[str, Tensor]:
        """How often the partner is nearest, and for a guess; spread of the projections; alignment, once calibrated."""
        branch = contrast_branch(model)
        with own_pass(model):
            projected = project_views(model, images)
            rows = branch.rows(model.features(images)) if branch.feature_moments.known else None
        figures = {
            "contrastive_accuracy": contrastive_accuracy(projected),
            "contrastive_chance": torch.tensor(1 / max(1, len(projected) - 1)),
            "spread": 1 - F.normalize(projected, dim=1).mean(0).square().sum(),
        }
        if rows is not None:
            figures["feature_alignment"], figures["projection_alignment"] = branch.alignments(rows)
        return figures

    def warnings(self, health: Mapping[str, float]) -> list[str]:
        warnings = []
        if health["contrastive_accuracy"] < 10 * health["contrastive_chance"]:
            warnings.append(
                f"the branch has learned nothing: a view's partner is its nearest neighbour in "
                f"{health['contrastive_accuracy']:.1%} of the cases, by chance in {health['contrastive_chance']:.1%}"
            )
        if health["spread"] < 0.01:
            warnings.append(f"the branch has collapsed: its projections spread by {health['spread']:.2g} of at most 1")
        return warnings

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return moved_parameters(model, self.moves)

    def buffers(self, model: Branched) -> dict[str, Tensor]:
        if not self._aligns or not self.queue:
            return {}
        return {f"queue.{name}": buffer for name, buffer in contrast_branch(model).queue.named_buffers()}

    def _contrastive_loss(self, model: Branched, images: Tensor) -> Tensor:
        return contrastive_loss(project_views(model, images), self.temperature, self.base_temperature)

    @property
    def _aligns(self) -> bool:
        return self.feature_weight > 0 or self.projection_weight > 0

    def _test_rows(self, model: Branched, images: Tensor) -> Tensor:
        """Features and projections of the images, and of past ones where there is a queue."""
        branch = contrast_branch(model)
        if not branch.feature_moments.known:
            raise InputError(
                "TTT++ aligns features with the source's moments, which are not known yet: train with held_out=..., or "
                "call model.calibrate(ncttt.data.batches(held_out, 128)); without alignment it works at "
                "feature_weight=0, projection_weight=0"
            )
        rows = branch.rows(model.features(images))
        if not self.queue:
            return rows
        if self.queue > len(branch.queue.rows):
            raise InputError(f"the branch has room for {len(branch.queue.rows)} rows in its queue; found {self.queue}")
        return branch.queue.join(images, rows, self.queue)
