"""NC-TTT: train a discriminator of noisy feature views, then adapt the encoder until it sees source-like features.

Equations 5 to 9 of the paper. Departures, each an option whose paper form stays available: the projected features can
be standardised or whitened, the discriminator can see the classifier's softmax, what the loss moves is chosen apart
from where it reads, and at test time the entropy of the predictions is lowered, in steps whose size the discriminator
sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.base.parallel import draw
from ncttt.methods.base import Method, Objective
from ncttt.methods.nc_ttt.branch import NoiseBranch
from ncttt.methods.shared import EntropyOf, check_choices, mean_entropy, moved_parameters
from ncttt.model.branched import Branched, Features
from ncttt.model.modes import evaluating
from ncttt.model.norm import Policy, batch_norms, looking, statistics
from ncttt.noise import Noise, check_scales, contrastive_loss, family, in_distribution_loss, soft_label, view_logit


@dataclass(frozen=True, kw_only=True)
class NCTTT(Method):
    """Noise-contrastive test-time training; the defaults are the recommended preset.

    `head`: one noise vector per position (`pixel`) or per image (`flat`). `channels`: of the projector; `hidden`: of
    the discriminator, with BatchNorm if `discriminator_norm`. `views`: noisy samples per side. `scaling` of the
    projected features: `none`, `standardize` or `whiten`. `conditional`: the discriminator sees the classifier's
    softmax. `moves`: `first_half` (of the layers up to the tap), `encoder` (all of them), `norm` (scale and shift of
    their normalisation layers) or a layer's name, for everything up to and including it; the three words mean this even
    where a layer has such a name. A step lowers the predictions' mean entropy, with the weight `entropy`, and the
    discriminator's loss, with the weight `contrast`. The entropy is that of the prediction for `each` of the copies or
    of the `mean` over the copies of an image (`entropy_of`). `step_size`: a step has the learning rate (`fixed`), or
    less of it the nearer the batch's mean score is to that of source images (`score`): the share is their distance in
    standard deviations of the latter, at most 1; a batch that scores like source images takes no step. Before
    calibration steps are `fixed`.
    `discriminator_statistics`: of the discriminator's BatchNorm at test time, the `source`'s or those of the
    `batch`, as in the authors' code. `variance`: noise is `added` to the projected features, as in the paper, or takes
    the place of a part of them, so that their variance is `preserved` and only their shape tells the views apart.
    """

    name: ClassVar[str] = "nc_ttt"
    title: ClassVar[str] = "NC-TTT"
    place: ClassVar[float] = 90
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    branch_settings = ("head", "channels", "hidden", "discriminator_norm", "scaling", "conditional")
    added: ClassVar[Mapping[str, Any]] = {
        "discriminator_statistics": "source",
        "entropy_of": "each",
        "variance": "added",
        "contrast": 1.0,
        "step_size": "fixed",
    }

    steps: int = 1
    lr: float = 5e-3
    norm: Policy | tuple[Policy, Policy] = "batch"
    auxiliary_weight: float = 0.3
    copies: int = 2
    crop: float = 0.875
    mirror_mean: bool = True
    head: Literal["pixel", "flat"] = "pixel"
    sigma_in: float = 0.5
    sigma_out: float = 1.0
    channels: int = 16
    hidden: int = 256
    discriminator_norm: bool = False
    views: int = 1
    scaling: Literal["none", "standardize", "whiten"] = "whiten"
    conditional: bool = True
    moves: str = "first_half"
    noise: str | Noise = "gaussian"
    entropy: float = 1.0
    entropy_of: EntropyOf = "mean"
    contrast: float = 0.0
    step_size: Literal["fixed", "score"] = "score"
    discriminator_statistics: Literal["source", "batch"] = "source"
    variance: Literal["added", "preserved"] = "added"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("entropy", "contrast"):
            if not 0 <= getattr(self, field) < math.inf:
                raise InputError(f"{field} must be finite and not negative; found {getattr(self, field)!r}")
        if not self.entropy and not self.contrast:
            raise InputError("entropy and contrast are the weights of what a step lowers; found 0 for both")
        check_scales(self.sigma_in, self.sigma_out)
        if self.variance == "preserved" and self.sigma_out > 1:
            raise InputError(f"noise that preserves the variance has sigma_out <= 1; found {self.sigma_out!r}")
        family(self.noise)
        check_choices(self, **_CHOICES)
        for field in ("channels", "hidden", "views"):
            value = getattr(self, field)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{field} must be a whole number of at least 1; found {value!r}")

    @classmethod
    def fast(cls, **overrides: Any) -> NCTTT:
        """The preset at two thirds of its cost: a step learns from one copy, which is smaller."""
        return cls(**({"copies": 1, "crop": 0.8125} | overrides))

    @classmethod
    def paper_cifar(cls, **overrides: Any) -> NCTTT:
        """The form of the paper's CIFAR experiments; tap `layer2`."""
        paper = {"head": "flat", "channels": 96, "sigma_in": 0.0, "sigma_out": 0.015, "lr": 1e-5}
        return cls(**(_PAPER | paper | overrides))

    @classmethod
    def paper_visda(cls, **overrides: Any) -> NCTTT:
        """The form of the paper's VisDA-C experiments; tap `layer1`."""
        paper = {"head": "pixel", "channels": 16, "sigma_in": 0.025, "sigma_out": 0.05, "lr": 1e-4}
        return cls(**(_PAPER | paper | overrides))

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> NoiseBranch:
        return NoiseBranch(
            features,
            conditional=self.conditional,
            classes=logits.shape[1],
            **{name: getattr(self, name) for name in self.branch_settings if name != "conditional"},
        )

    def training_loss(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> Tensor:
        """Eq. 8: every position has noise of its own, and both kinds of view share one pass of the discriminator."""
        losses = [contrastive_loss(views, labels) for views, labels, _ in self._noisy_views(model, features, logits)]
        return torch.stack(losses).mean()

    @torch.no_grad()
    def health(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> dict[str, Tensor]:
        """In/out accuracy, the loss a perfect judge of the noise would have, mean soft label, spread of projections."""
        heads = []
        for views, labels, projected in self._noisy_views(model, features, logits):
            inner, outer = views.chunk(2)
            heads.append(
                {
                    "in_out_accuracy": 0.5 * ((inner > 0).float().mean() + (outer <= 0).float().mean()),
                    "bayes_floor": torch.special.entr(labels).add(torch.special.entr(1 - labels)).mean(),
                    "soft_label": labels.mean(),
                    "spread": projected.flatten(0, 1).std(0, correction=0).mean(),
                }
            )
        return {name: torch.stack([head[name] for head in heads]).mean() for name in heads[0]}

    def warnings(self, health: Mapping[str, float]) -> list[str]:
        warnings, guess = [], math.log(2)
        if health["auxiliary"] > 0.99 * guess:
            warnings.append(
                f"the branch has learned nothing: its held-out loss is {health['auxiliary']:.3f}, that of a guess is "
                f"{guess:.3f} and the least possible {health['bayes_floor']:.3f}; train longer, or with larger sigmas"
            )
        if health["spread"] < 0.1 * self.sigma_out:
            warnings.append(
                f"the branch has collapsed: projections spread by {health['spread']:.2g}, far below the noise of "
                f"{self.sigma_out:g}; a scaling (standardize, whiten) prevents it"
            )
        return warnings

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        """Eq. 9 on the noise-free projection; what follows the tap runs only for condition and entropy."""
        if _branch(model).conditional or self.entropy:
            logits, features = model.forward_with_features(images, detach=not self.entropy)
        else:
            logits, features = None, model.features(images)
        with torch.set_grad_enabled(self.contrast > 0):
            heads = self._discriminate(model, features, logits)
        parts = []
        if self.contrast:
            parts.append(self.contrast * torch.stack([in_distribution_loss(head) for head in heads]).mean())
        if self.entropy and logits is not None:
            parts.append(self.entropy * mean_entropy(logits, self.copies if self.entropy_of == "mean" else 1))
        score = _mean_probability(heads)
        return Objective(torch.stack(parts).sum(), score, pace=self._pace(model, score))

    def _pace(self, model: Branched, score: Tensor) -> Tensor | None:
        """How far the mean score is below that of source images, in standard deviations; None uncalibrated."""
        mean, spread = _branch(model).source_score
        if self.step_size == "fixed" or mean < 0:
            return None
        return ((mean - score.detach().mean()) / spread.clamp(min=1e-6)).clamp(0, 1)

    def score(self, model: Branched, features: Features, logits: Tensor | None) -> Tensor:
        return _mean_probability(self._discriminate(model, features, logits))

    @torch.no_grad()
    def calibrate(self, model: Branched, batches: Iterable[Tensor | Sequence[Tensor]]) -> None:
        """Remember the mean and the spread over images of the score that held-out source images have.

        The mean score of the same images with shuffled pixels tells whether the branch has learned what source images
        look like. Batches are images, or pairs whose first part is: labels, if there are any, are not looked at.
        """
        scores, shuffled = [], []
        layers = model.batch_norms()
        policy = looking(self.gradient_norm) if layers else "source"
        with evaluating(model), statistics(layers, policy):
            for batch in batches:
                images = batch if isinstance(batch, Tensor) else batch[0]
                model.check_images(images)
                images = images.to(model.mean)
                scores.append(self._score_of(model, images))
                shuffled.append(self._score_of(model, _with_shuffled_pixels(images)))
        if not scores:
            raise InputError("calibration needs at least one batch of source images; found none")
        score = torch.cat(scores)
        _branch(model).source_score.copy_(torch.stack([score.mean(), score.std(correction=0)]))
        _branch(model).shuffled_score.copy_(torch.cat(shuffled).mean())

    def forget(self, model: Branched) -> None:
        _branch(model).source_score.fill_(-1.0)
        _branch(model).shuffled_score.fill_(-1.0)

    def tells_source(self, model: Branched) -> bool:
        """Whether sixteen images with shuffled pixels would score below the source's level, or nobody has looked."""
        level, shuffled = self.source_level(model, 16), _branch(model).shuffled_score.item()
        return level is None or shuffled < level

    def source_level(self, model: Branched, images: int) -> float | None:
        """The least mean score of a batch that looks like source: two standard errors below the source's mean."""
        mean, spread = _branch(model).source_score.tolist()
        return None if mean < 0 else mean - 2 * spread / images**0.5

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return moved_parameters(model, self.moves)

    def _score_of(self, model: Branched, images: Tensor) -> Tensor:
        logits, features = model.forward_with_features(images)
        return self.score(model, features, logits)

    def _noisy_views(self, model: Branched, features: Features, logits: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """For each head: logits and labels `(2 * views, B, P)`, in-views first, and the projection `(B, P, dim)`."""
        branch, kind = _branch(model), family(self.noise)
        condition = branch.condition(logits)

        def sample(like: Tensor, generator: torch.Generator | None) -> Tensor:
            return torch.cat([kind.sample(like, sigma, generator) for sigma in (self.sigma_in, self.sigma_out)])

        views_of_heads = []
        # Half precision, where the rest of a training uses it, is coarser than small noise.
        with torch.autocast(logits.device.type, enabled=False):
            for head, projected in branch.each(features):
                noise = draw(sample, projected.detach().expand(self.views, *projected.shape), dim=1)
                views, labels = self._views_and_labels(projected, noise)
                views_of_heads.append((head.discriminate(views, condition), labels, projected))
        return views_of_heads

    def _views_and_labels(self, projected: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Views `(2 * views, B, P, dim)`, in-views first, and their soft labels without the last dimension."""
        if self.variance == "added":
            return projected + noise, soft_label(noise, self.sigma_in, self.sigma_out, self.noise)
        inner, outer = ((1 - sigma**2) ** 0.5 for sigma in (self.sigma_in, self.sigma_out))
        kept = noise.new_tensor([inner] * self.views + [outer] * self.views).view(-1, 1, 1, 1)
        with torch.no_grad():
            places = projected * kept
            from_inner, from_outer = (places + noise - share * projected for share in (inner, outer))
            if self.sigma_in == 0:
                from_inner[: self.views] = 0  # rounding is no noise
            labels = view_logit(from_inner, from_outer, self.sigma_in, self.sigma_out, self.noise).sigmoid()
        return kept * projected + noise, labels

    def _discriminate(self, model: Branched, features: Features, logits: Tensor | None) -> list[Tensor]:
        """Logits `(B, P)` of the noise-free features, for each head."""
        branch = _branch(model)
        condition = branch.condition(logits)
        pairs = branch.each(features)
        # The scaling before the discriminators keeps the source's statistics.
        layers = [layer for head, _ in pairs for layer in batch_norms(head.discriminator)]
        with statistics(layers, self.discriminator_statistics if layers else "source"):
            return [head.discriminate(projected[None], condition)[0] for head, projected in pairs]


_CHOICES = {
    "step_size": ("fixed", "score"),
    "entropy_of": get_args(EntropyOf),
    "head": ("pixel", "flat"),
    "scaling": ("none", "standardize", "whiten"),
    "discriminator_statistics": ("source", "batch"),
    "variance": ("added", "preserved"),
}
_PAPER: dict[str, Any] = {
    "hidden": 1024,
    "discriminator_norm": True,
    "scaling": "none",
    "conditional": False,
    "moves": "encoder",
    "copies": 1,
    "crop": 1.0,
    "mirror_mean": False,
    "entropy": 0.0,
    "contrast": 1.0,
    "step_size": "fixed",
    "steps": 20,
    "auxiliary_weight": 1.0,
}


def _branch(model: Branched) -> NoiseBranch:
    assert isinstance(model.branch, NoiseBranch)
    return model.branch


def _with_shuffled_pixels(images: Tensor) -> Tensor:
    """The same colours without any shape: pixels in one random order for all images, always the same."""
    pixels = images.flatten(2)
    order = torch.randperm(pixels.shape[2], generator=torch.Generator().manual_seed(0), device="cpu")
    return pixels[:, :, order.to(images.device)].view_as(images)


def _mean_probability(heads: list[Tensor]) -> Tensor:
    return torch.stack([head.sigmoid().mean(1) for head in heads]).mean(0)
