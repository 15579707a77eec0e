"""ClusT3: cluster the features of every position so that the clusters tell much about the features.

With p the softmax over K clusters at a position, the loss is minus the mutual information
I = H(mean p) - mean H(p), means over all positions of all images: clusters used equally, each position sure of its own.
The losses of all projectors of all tapped layers are added, as the authors add them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.base.parallel import mean_over_processes
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import moved_parameters
from ncttt.model.branched import Branched, Features
from ncttt.model.features import as_positions, as_tuple
from ncttt.model.norm import Policy

REDUCTIONS = {"sum": torch.sum, "mean": torch.mean}  # over projectors and layers


class ClusterBranch(nn.Module):
    """Per tapped layer `projectors` independent linear maps of a position to the logits of `clusters` clusters."""

    def __init__(self, features: Features, *, projectors: int, clusters: int):
        super().__init__()
        self.shape = (projectors, clusters)
        widths = [as_positions(layer).shape[2] for layer in as_tuple(features)]
        # One wide linear layer is all projectors at once: its initial scale depends on its input alone.
        self.projectors = nn.ModuleList(nn.Linear(width, projectors * clusters) for width in widths)

    def forward(self, features: Features) -> list[Tensor]:
        """For each layer the cluster logits `(B * P, projectors, clusters)` of its positions."""
        pairs = zip(self.projectors, as_tuple(features), strict=True)
        return [projector(as_positions(layer).flatten(0, 1)).unflatten(1, self.shape) for projector, layer in pairs]


@dataclass(frozen=True, kw_only=True)
class ClusT3(Method):
    """Mutual information between features and their clusters.

    `clusters`: K, for each of `projectors` independent clusterings of each tapped layer. `reduction`: whether their
    losses are added, as the authors do, or averaged; a sum over 15 projectors of two layers is 30 times the mean.
    `moves`: `encoder`, `norm` or a layer's name, for everything up to and including it.
    """

    name: ClassVar[str] = "clust3"
    title: ClassVar[str] = "ClusT3"
    place: ClassVar[float] = 70
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    branch_settings = ("clusters", "projectors")
    added: ClassVar[Mapping[str, Any]] = {"reduction": "mean"}

    steps: int = 20
    lr: float = 1e-5
    norm: Policy | tuple[Policy, Policy] = "batch"
    clusters: int = 10
    projectors: int = 15
    reduction: Literal["sum", "mean"] = "sum"
    moves: str = "encoder"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, least in {"clusters": 2, "projectors": 1}.items():
            value = getattr(self, field)
            if not isinstance(value, int) or value < least:
                raise InputError(f"{field} must be a whole number of at least {least}; found {value!r}")
        if self.reduction not in REDUCTIONS:
            raise InputError(f"reduction must be {' or '.join(REDUCTIONS)}; found {self.reduction!r}")

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> ClusterBranch:
        return ClusterBranch(features, projectors=self.projectors, clusters=self.clusters)

    def training_loss(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> Tensor:
        return self._loss(model, features)

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        return Objective(self._loss(model, model.features(images)))

    @torch.no_grad()
    def health(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> dict[str, Tensor]:
        """Mutual information in nats, its maximum, and how many clusters are in use (the perplexity of mean p)."""
        layers = _branch(model)(features)
        used = [marginal_entropy(layer.log_softmax(-1).exp()).exp() for layer in layers]
        return {
            "mutual_information": torch.stack([mutual_information(layer) for layer in layers]).mean(),
            "mutual_information_maximum": torch.tensor(log(self.clusters)),
            "clusters_used": torch.stack(used).mean(),
        }

    def warnings(self, health: Mapping[str, float]) -> list[str]:
        warnings, share = [], health["mutual_information"] / log(self.clusters)
        if share < 0.05:
            warnings.append(
                f"the clusters tell nothing about the features: their mutual information is "
                f"{health['mutual_information']:.3f} nats of at most {log(self.clusters):.3f}; train longer"
            )
        if health["clusters_used"] < 1.5:
            warnings.append(
                f"the branch has collapsed: it uses {health['clusters_used']:.1f} of {self.clusters} clusters"
            )
        return warnings

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return moved_parameters(model, self.moves)

    def _loss(self, model: Branched, features: Features) -> Tensor:
        reduce = REDUCTIONS[self.reduction]
        return -reduce(torch.stack([reduce(mutual_information(layer)) for layer in _branch(model)(features)]))


def mutual_information(logits: Tensor) -> Tensor:
    """Mutual information, in nats, between a sample and its cluster: logits `(N, ..., K)` give `(...)`.

    >>> sure = torch.tensor([[9.0, -9.0], [-9.0, 9.0]])
    >>> round(mutual_information(sure).item(), 4), round(mutual_information(0 * sure).item(), 4)
    (0.6931, 0.0)
    """
    log_probabilities = logits.log_softmax(-1)
    probabilities = log_probabilities.exp()
    conditional = -(probabilities * log_probabilities).sum(-1).mean(0)
    return marginal_entropy(probabilities) - conditional


def marginal_entropy(probabilities: Tensor) -> Tensor:
    """Entropy of the mean over samples, of all processes that pool their moments: `(N, ..., K)` gives `(...)`."""
    return torch.special.entr(mean_over_processes(probabilities.mean(0))).sum(-1)


def _branch(model: Branched) -> ClusterBranch:
    assert isinstance(model.branch, ClusterBranch)
    return model.branch
