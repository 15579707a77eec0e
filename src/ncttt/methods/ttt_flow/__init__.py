"""TTTFlow: a normalising flow learns the density of source features; at test time the encoder makes its own likely.

The loss is the negative log-likelihood -log N(f(z); 0, I) - log |det df/dz| of every position's feature vector z, per
dimension. The flow f is trained after the classifier, which stays as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import moved_parameters
from ncttt.methods.ttt_flow.flow import Flow
from ncttt.model.branched import Branched, Features
from ncttt.model.features import as_positions, as_tuple
from ncttt.model.norm import Policy


class FlowBranch(nn.Module):
    """One flow for each tapped layer."""

    def __init__(self, features: Features, *, couplings: int, hidden: int, limit: float):
        super().__init__()
        widths = [as_positions(layer).shape[2] for layer in as_tuple(features)]
        self.flows = nn.ModuleList(Flow(w, couplings=couplings, hidden=hidden, limit=limit) for w in widths)

    def each(self, features: Features) -> list[tuple[Flow, Tensor]]:
        """Every flow with the positions `(B * P, C)` of its layer."""
        pairs = zip(self.flows, as_tuple(features), strict=True)
        return [(flow, as_positions(layer).flatten(0, 1)) for flow, layer in pairs if isinstance(flow, Flow)]

    def forward(self, features: Features) -> Tensor:
        """The mean negative log-likelihood in nats per dimension."""
        return torch.stack([flow.negative_log_likelihood(rows).mean() for flow, rows in self.each(features)]).mean()


@dataclass(frozen=True, kw_only=True)
class TTTFlow(Method):
    """Likelihood of the features under a coupling flow.

    `couplings`: how many; `hidden`: width of their two hidden layers; `limit`: bound of their logarithmic scale.
    `moves`: `encoder`, `norm` or a layer's name, for everything up to and including it.
    """

    name: ClassVar[str] = "ttt_flow"
    title: ClassVar[str] = "TTTFlow"
    place: ClassVar[float] = 80
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    trains: ClassVar[Literal["joint", "branch"]] = "branch"
    branch_settings = ("couplings", "hidden", "limit")

    steps: int = 10
    lr: float = 1e-3
    optimizer: str = "sgd"
    norm: Policy | tuple[Policy, Policy] = "batch"
    couplings: int = 4
    hidden: int = 128
    limit: float = 2.0
    moves: str = "encoder"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("couplings", "hidden"):
            value = getattr(self, field)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{field} must be a whole number of at least 1; found {value!r}")
        if not 0 < self.limit < float("inf"):
            raise InputError(f"limit must be positive and finite; found {self.limit!r}")

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> FlowBranch:
        return FlowBranch(features, couplings=self.couplings, hidden=self.hidden, limit=self.limit)

    def training_loss(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> Tensor:
        """On features without history: an encoder that learned along would make them likely by making them constant."""
        return _branch(model)(tuple(layer.detach() for layer in as_tuple(features)))

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        return Objective(_branch(model)(model.features(images)))

    @torch.no_grad()
    def health(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> dict[str, Tensor]:
        """Bits per dimension under the flow, and under independent normal distributions with the source's moments."""
        pairs = _branch(model).each(features)
        costs = {
            "bits_per_dimension": [flow.negative_log_likelihood(rows).mean() for flow, rows in pairs],
            "gaussian_bits_per_dimension": [flow.gaussian_cost(rows).mean() for flow, rows in pairs],
        }
        return {name: torch.stack(values).mean() / log(2) for name, values in costs.items()}

    def warnings(self, health: Mapping[str, float]) -> list[str]:
        flow, gaussian = health["bits_per_dimension"], health["gaussian_bits_per_dimension"]
        if flow < gaussian - 0.01:
            return []
        return [
            f"the flow has learned nothing: {flow:.3f} bits per dimension, and independent normal distributions have "
            f"{gaussian:.3f}; train longer"
        ]

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return moved_parameters(model, self.moves)


def _branch(model: Branched) -> FlowBranch:
    assert isinstance(model.branch, FlowBranch)
    return model.branch
