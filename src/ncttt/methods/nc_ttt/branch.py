"""The auxiliary branch of NC-TTT: per tapped layer a projector, a scaling and a discriminator.

Whatever the features are, maps `(B, C, H, W)`, tokens `(B, N, C)` or vectors `(B, C)`, they become positions
`(B, P, C)`, on which a 1x1 convolution is a linear layer. One noise vector covers a position (`pixel`) or the whole
image (`flat`).
"""

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.base.parallel import mean_over_processes, processes
from ncttt.model.branched import Features
from ncttt.model.features import as_positions, as_tuple


class Whiten(nn.Module):
    """Decorrelate rows `(N, channels)` to unit covariance by Cholesky, with running moments like BatchNorm's.

    Standardising each channel lets the projector repeat one direction in all of them; whitening does not.
    """

    mean: Tensor
    covariance: Tensor

    def __init__(self, channels: int, momentum: float = 0.1, shrinkage: float = 1e-3):
        super().__init__()
        self.momentum, self.shrinkage = momentum, shrinkage
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("covariance", torch.eye(channels))

    def forward(self, rows: Tensor) -> Tensor:
        # Half precision has no Cholesky and too few digits for a covariance.
        exact = rows.to(torch.promote_types(rows.dtype, torch.float32))
        mean, covariance = self._batch_moments(exact) if self.training else (self.mean, self.covariance)
        mean, covariance = mean.to(exact), covariance.to(exact)
        identity = torch.eye(len(covariance), dtype=exact.dtype, device=exact.device)
        # Relative to the mean variance, so that shrinking the projection cannot hide in the regulariser.
        ridge = self.shrinkage * covariance.diagonal().mean() + 1e-12
        # Unlike `cholesky`, `cholesky_ex` does not make a GPU wait to report a failure; that would show as NaN.
        factor = torch.linalg.cholesky_ex(covariance + ridge * identity)[0]
        inverse = torch.linalg.solve_triangular(factor, identity, upper=False)
        return ((exact - mean) @ inverse.T).to(rows.dtype)

    def _batch_moments(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        mean = mean_over_processes(rows.mean(0))
        centred = rows - mean
        count = len(rows) * processes()
        covariance = mean_over_processes(centred.T @ centred) * processes() / max(1, count - 1)
        with torch.no_grad():
            self.mean.lerp_(mean.to(self.mean.dtype), self.momentum)
            self.covariance.lerp_(covariance.to(self.mean.dtype), self.momentum)
        return mean, covariance


def scaling_layer(scaling: str, channels: int) -> nn.Module:
    """The layer that gives the projected features `(N, channels)` a scale, so that sigma means something."""
    layers = {
        "none": nn.Identity,
        "standardize": lambda: nn.BatchNorm1d(channels, affine=False),
        "whiten": lambda: Whiten(channels),
    }
    return layers[scaling]()


class NoiseHead(nn.Module):
    """Projector, scaling and discriminator on one layer's features."""

    def __init__(
        self,
        features: Tensor,
        *,
        head: str,
        channels: int,
        hidden: int,
        scaling: str,
        classes: int,
        discriminator_norm: bool,
    ):
        super().__init__()
        positions = as_positions(features)
        self.flat = head == "flat"
        self.projector = nn.Linear(positions.shape[2], channels)
        self.scaling = scaling_layer(scaling, channels)
        self.dim = channels * (positions.shape[1] if self.flat else 1)
        norm = [nn.BatchNorm1d(hidden)] if discriminator_norm else []
        self.discriminator = nn.Sequential(
            nn.Linear(self.dim + classes, hidden), *norm, nn.LeakyReLU(0.2), nn.Linear(hidden, 1)
        )

    def project(self, features: Tensor) -> Tensor:
        """Projected features as noise-sized vectors `(B, P, dim)`; P is 1 for the flat head."""
        projected = self.projector(as_positions(features).to(self.projector.weight.dtype))
        projected = self.scaling(projected.flatten(0, 1)).view_as(projected)
        if not self.flat:
            return projected
        if projected[0].numel() != self.dim:
            raise InputError(
                f"the flat head was built for {self.dim // projected.shape[2]} positions; found {projected.shape[1]} "
                "(another image size?); use head='pixel', which takes any"
            )
        return projected.flatten(1).unsqueeze(1)

    def discriminate(self, vectors: Tensor, condition: Tensor | None) -> Tensor:
        """In-distribution logits `(V, B, P)` of vectors `(V, B, P, dim)`, all views in one pass."""
        if condition is not None:
            joined = condition[None, :, None, :].expand(*vectors.shape[:3], condition.shape[1])
            vectors = torch.cat([vectors, joined], dim=-1)
        return self.discriminator(vectors.flatten(0, 2)).view(vectors.shape[:3])


class NoiseBranch(nn.Module):
    """One `NoiseHead` per tapped layer, and what calibration remembers of the source."""

    source_score: Tensor
    shuffled_score: Tensor

    def __init__(self, features: Features, *, conditional: bool, classes: int, **settings: object):
        super().__init__()
        self.conditional = conditional
        joined = classes if conditional else 0
        self.heads = nn.ModuleList(NoiseHead(f, classes=joined, **settings) for f in as_tuple(features))  # type: ignore[arg-type]
        # Mean and spread of the score over held-out source images; -1, which no score has, until calibrated.
        self.register_buffer("source_score", torch.full((2,), -1.0))
        # Its mean over the same images with shuffled pixels, which are certainly no source images.
        self.register_buffer("shuffled_score", torch.tensor(-1.0))

    def each(self, features: Features) -> list[tuple[NoiseHead, Tensor]]:
        """Every head with the projected vectors `(B, P, dim)` of its layer."""
        pairs = zip(self.heads, as_tuple(features), strict=True)
        return [(head, head.project(f)) for head, f in pairs if isinstance(head, NoiseHead)]

    def condition(self, logits: Tensor | None) -> Tensor | None:
        """The classifier's softmax, cut off from its gradient, where the branch is class-conditional."""
        return logits.detach().softmax(1) if self.conditional and logits is not None else None
