"""The way of a point that lowers -log q by gradient steps, with the exact posterior as q (Eq. 4 and 9)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt import noise


@dataclass(frozen=True)
class Posterior:
    """The probability q that a point is in-distribution, given source points `(R, 2)` and two scales."""

    references: Tensor
    sigma_in: float
    sigma_out: float

    def loss(self, points: Tensor) -> Tensor:
        """`-log q` of points `(N, 2)`, as `(N,)`."""
        return F.softplus(-noise.kde_posterior_logit(points, self.references, self.sigma_in, self.sigma_out))

    def probability(self, points: Tensor) -> Tensor:
        """q of points `(N, 2)`, as `(N,)`."""
        return torch.exp(-self.loss(points))

    def downhill(self, points: Tensor) -> Tensor:
        """The negative gradient of `-log q` at points `(N, 2)`, by autograd."""
        with torch.enable_grad():
            moved = points.detach().clone().requires_grad_()
            (gradient,) = torch.autograd.grad(self.loss(moved).sum(), moved)
        return -gradient


def descend(posterior: Posterior, start: Tensor, steps: int, lr: float) -> Tensor:
    """The positions `(steps + 1, 2)` of a point `(2,)` under gradient steps on `-log q`."""
    positions = [start]
    for _ in range(steps):
        positions.append(positions[-1] + lr * posterior.downhill(positions[-1][None])[0])
    return torch.stack(positions)
