"""A normalising flow on feature vectors: standardisation and affine couplings, with the exact log-determinant.

A coupling keeps one part a of the channels and maps the other, b -> b * exp(s(a)) + t(a); the logarithm of its
Jacobian's determinant is the sum of s. Before each, the channels change places, which costs no volume.
"""

from math import log, pi

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError


class Standardise(nn.Module):
    """Subtract the source's mean and divide by its spread, both learned by counting while in training mode.

    Every row is mapped by the same fixed numbers, never by its batch's, so the log-determinant is exact. The moments
    are those of all rows seen, and forget old batches once there were many.
    """

    mean: Tensor
    variance: Tensor
    batches: Tensor

    def __init__(self, channels: int, shrinkage: float = 1e-3, memory: int = 1000):
        super().__init__()
        self.shrinkage, self.memory = shrinkage, memory
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows `(N, channels)` on a common scale, and the log-determinant `()`, the same for all of them."""
        if self.training:
            self._count(rows.detach())
        spread = self.spread()
        return (rows - self.mean) / spread, -spread.log().sum()

    def inverse(self, rows: Tensor) -> Tensor:
        """The rows that `forward` turns into these."""
        return rows * self.spread() + self.mean

    def spread(self) -> Tensor:
        """Standard deviations `(channels,)`; a channel that never moved gets a small one, not zero."""
        return (self.variance + self.shrinkage * self.variance.mean() + 1e-12).sqrt()

    @torch.no_grad()
    def _count(self, rows: Tensor) -> None:
        self.batches += 1
        share = (1 / self.batches).clamp(min=1 / self.memory)
        step = rows.mean(0) - self.mean
        variance = rows.var(0, correction=0) + (1 - share) * step.square()
        self.variance.lerp_(variance.to(self.variance), share)
        self.mean.lerp_((self.mean + step).to(self.mean), share)


class Coupling(nn.Module):
    """One affine coupling with a bounded scale after a fixed permutation, which is all that it does at first."""

    order: Tensor

    def __init__(self, channels: int, hidden: int, limit: float, seed: int):
        super().__init__()
        self.limit = limit
        self.kept, self.moved = channels - channels // 2, channels // 2
        self.register_buffer("order", torch.randperm(channels, generator=torch.Generator().manual_seed(seed)))
        last = nn.Linear(hidden, 2 * self.moved)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.net = nn.Sequential(nn.Linear(self.kept, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), last)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Mapped rows `(N, channels)` and their log-determinants `(N,)`."""
        kept, moved = rows[:, self.order].split([self.kept, self.moved], dim=1)
        scale, shift = self._scale_and_shift(kept)
        return torch.cat([kept, moved * scale.exp() + shift], dim=1), scale.sum(1)

    def inverse(self, rows: Tensor) -> Tensor:
        """The rows that `forward` turns into these."""
        kept, moved = rows.split([self.kept, self.moved], dim=1)
        scale, shift = self._scale_and_shift(kept)
        return torch.cat([kept, (moved - shift) * (-scale).exp()], dim=1)[:, self.order.argsort()]

    def _scale_and_shift(self, kept: Tensor) -> tuple[Tensor, Tensor]:
        scale, shift = self.net(kept).chunk(2, dim=1)
        return self.limit * torch.tanh(scale / self.limit), shift


class Flow(nn.Module):
    """Standardisation and couplings: an invertible map of rows `(N, channels)` to a standard normal distribution."""

    def __init__(self, channels: int, *, couplings: int, hidden: int, limit: float):
        super().__init__()
        if channels < 2:
            raise InputError(f"a coupling flow needs features of at least 2 channels; found {channels}")
        self.standardise = Standardise(channels)
        self.couplings = nn.ModuleList(Coupling(channels, hidden, limit, seed) for seed in range(couplings))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Latent rows `(N, channels)` and the log-determinants `(N,)` of the map."""
        rows, total = self.standardise(rows)
        for coupling in self.couplings:
            rows, part = coupling(rows)
            total = total + part
        return rows, total

    def inverse(self, latent: Tensor) -> Tensor:
        """The rows `(N, channels)` that `forward` turns into these."""
        for coupling in reversed(self.couplings):
            latent = coupling.inverse(latent)  # type: ignore[operator]
        return self.standardise.inverse(latent)

    def negative_log_likelihood(self, rows: Tensor) -> Tensor:
        """Nats per dimension `(N,)` of rows `(N, channels)`."""
        return _normal_cost(*self(rows))

    def gaussian_cost(self, rows: Tensor) -> Tensor:
        """Nats per dimension `(N,)` under independent normal distributions with the source's moments."""
        return _normal_cost(*self.standardise(rows))


def _normal_cost(latent: Tensor, log_determinant: Tensor) -> Tensor:
    return 0.5 * (latent.square().mean(1) + log(2 * pi)) - log_determinant / latent.shape[1]
