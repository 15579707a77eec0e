"""What a monitor knows of source images, and how odd others are beside them.

An image is compared with source images of the class that the model predicts for it, so that a stream of one class is
not odd for its class. Every signal becomes a normal score: the number of standard deviations at which a normal variable
has the image's rank among source images. The certainty (the mean of confidence and evidence, which are much alike)
and the features then count alike, without weights to fit: that is how odd an image is. How far its signals and layers
lie from the source's in any direction, by Mahalanobis' distance, tells images that are others without being odder. The
sum of both, which was best on held-out images under corruptions that no table uses, is the image's number. The branch's
score is not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.monitor.looking import Look, doubt_of

CERTAINTY, FEATURES, BRANCH = ("confidence", "evidence"), "features", "branch"
# A class is known by its own images and by so many like the average of all.
AVERAGE_IMAGES = 5
RIDGE = 1e-2


class Scores(NamedTuple):
    """Normal scores of images: `each` `(B, signals)`, `odd` and `unlike` `(B,)`, and `parts` `(B, 2 + layers)`.

    Large means odd. That of the branch is large for a high score, which is no more or less odd than a low one. The
    parts are confidence, evidence and every layer; `unlike` is `odd` and the distance of the parts together.
    """

    each: Tensor
    odd: Tensor
    parts: Tensor
    unlike: Tensor


@dataclass(frozen=True)
class Calibration:
    """Tensors that say how source images look, for a number of layers and perhaps a branch.

    `centres` `(classes, columns)` and `spreads` `(columns,)` are of the raw numbers: doubt, negative evidence, a
    distance for each layer, the branch's score. `ranks` `(signals, n)`, `part_ranks` `(2 + layers, n)` and those of
    `(n,)`, `odd_ranks`, `distance_ranks` and `unlike_ranks`, are sorted source images; `precision` is the inverse
    covariance of the scores of the parts.
    """

    centres: Tensor
    spreads: Tensor
    ranks: Tensor
    odd_ranks: Tensor
    distance_ranks: Tensor
    unlike_ranks: Tensor
    part_ranks: Tensor
    precision: Tensor
    certainty_spread: Tensor
    class_counts: Tensor
    layers: tuple[str, ...]
    has_branch: bool

    @property
    def images(self) -> int:
        """How many source images it is made from."""
        return len(self.odd_ranks)

    @property
    def signals(self) -> tuple[str, ...]:
        """The names of the signals, in the order of `scores`."""
        return (*CERTAINTY, *([FEATURES] if self.layers else []), *([BRANCH] if self.has_branch else []))

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name."""
        return {field.name: value for field in fields(self) if isinstance(value := getattr(self, field.name), Tensor)}

    def scores(self, look: Look) -> Scores:
        """How odd images are, by every signal, by all of them, layer by layer, and in any direction."""
        standard = self.standardised(look)
        each = _normal_scores(_signals(standard, self.layers, self.has_branch), self.ranks)
        odd = normal_score(_odd(each, self.certainty_spread, bool(self.layers)), self.odd_ranks)
        parts = _normal_scores(standard[:, : 2 + len(self.layers)], self.part_ranks)
        distance = normal_score(_distance(parts, self.precision), self.distance_ranks)
        return Scores(each, odd, parts, normal_score(odd + distance, self.unlike_ranks))

    def standardised(self, look: Look) -> Tensor:
        """The raw numbers `(B, columns)` in spreads, 0 for the mean source image of the predicted class."""
        self._check(look)
        raw = columns_of(look, self.layers, self.has_branch)
        return (raw - self.centres[look.logits.argmax(1).cpu()]) / self.spreads

    def _check(self, look: Look) -> None:
        if not set(self.layers) <= look.distances.keys():
            missing = sorted(set(self.layers) - look.distances.keys())
            raise InputError(f"layer {missing[0]!r} ran at calibration but not on these images")
        if look.logits.shape[1] != len(self.class_counts):
            raise InputError(f"calibrated for {len(self.class_counts)} classes; found {look.logits.shape[1]}")


def calibration_of(looks: list[Look]) -> Calibration:
    """What looks at source images tell."""
    layers, has_branch = tuple(looks[0].distances), looks[0].score is not None
    raw = torch.cat([columns_of(look, layers, has_branch) for look in looks])
    if not bool(raw.isfinite().all()):
        raise InputError("the model's logits or features of the calibration images are not finite; check its weights")
    predicted = torch.cat([look.logits.argmax(1).cpu() for look in looks])
    counts = predicted.bincount(minlength=looks[0].logits.shape[1]).double()
    sums = torch.zeros(len(counts), raw.shape[1], dtype=raw.dtype).index_add_(0, predicted, raw)
    centres = (sums + AVERAGE_IMAGES * raw.mean(0)) / (counts[:, None] + AVERAGE_IMAGES)
    rest = raw - centres[predicted]
    spreads = rest.std(0).clamp_min(1e-9)
    parts = (rest / spreads)[:, : 2 + len(layers)]
    part_ranks = _ranks(parts)
    part_scores = _normal_scores(parts, part_ranks)
    # The ridge keeps numbers that are nearly the same, as confidence and evidence are, from being told apart by noise.
    covariance = part_scores.T.cov() + RIDGE * torch.eye(2 + len(layers), dtype=raw.dtype)
    signals = _signals(rest / spreads, layers, has_branch)
    ranks = _ranks(signals)
    each = _normal_scores(signals, ranks)
    certainty_spread = each[:, :2].mean(1).std().clamp_min(1e-9)
    odd = _odd(each, certainty_spread, bool(layers))
    precision = covariance.inverse()
    distance = _distance(part_scores, precision)
    distance = distance / (1 - distance / len(raw)).clamp_min(0.1)  # as if each image were not part of the covariance
    odd_ranks, distance_ranks = odd.sort().values, distance.sort().values
    unlike = normal_score(odd, odd_ranks) + normal_score(distance, distance_ranks)
    return Calibration(
        centres,
        spreads,
        ranks,
        odd_ranks,
        distance_ranks,
        unlike.sort().values,
        part_ranks,
        precision,
        certainty_spread,
        counts,
        layers,
        has_branch,
    )


def columns_of(look: Look, layers: tuple[str, ...], has_branch: bool) -> Tensor:
    """The raw numbers of images `(B, columns)`, on the CPU and in double precision."""
    logits = look.logits.double()
    columns = [doubt_of(logits), -logits.logsumexp(1), *(look.distances[name] for name in layers)]
    if has_branch:
        assert look.score is not None
        columns.append(look.score)
    return torch.stack([column.cpu().double() for column in columns], dim=1)


def normal_score(values: Tensor, ranks: Tensor) -> Tensor:
    """Normal score of the rank of values among sorted ones; what is not a number is odder than all of them.

    >>> normal_score(torch.tensor([-9.0, 0.0, torch.nan]), torch.linspace(-1, 1, 5)).round(decimals=2)
    tensor([-1.3800,  0.0000,  1.3800], dtype=torch.float64)
    """
    values = values.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf).contiguous()
    below = torch.searchsorted(ranks, values)
    up_to = torch.searchsorted(ranks, values, right=True)
    return torch.special.ndtri(((below + up_to).double() / 2 + 0.5) / (len(ranks) + 1))


def _ranks(values: Tensor) -> Tensor:
    return values.T.contiguous().sort(1).values


def _normal_scores(standard: Tensor, ranks: Tensor) -> Tensor:
    return torch.stack([normal_score(column, row) for column, row in zip(standard.T, ranks, strict=True)], dim=1)


def _signals(standard: Tensor, layers: tuple[str, ...], has_branch: bool) -> Tensor:
    """Standardised columns with those of the layers put together as their mean: `(B, signals)`."""
    end = 2 + len(layers)
    features = [standard[:, 2:end].mean(1, keepdim=True)] if layers else []
    return torch.cat([standard[:, :2], *features, *([standard[:, end:]] if has_branch else [])], dim=1)


def _distance(parts: Tensor, precision: Tensor) -> Tensor:
    """Mahalanobis' distance, squared."""
    return ((parts @ precision) * parts).sum(1)


def _odd(scores: Tensor, certainty_spread: Tensor, has_features: bool) -> Tensor:
    certainty = scores[:, :2].mean(1) / certainty_spread
    return certainty + scores[:, 2] if has_features else certainty
