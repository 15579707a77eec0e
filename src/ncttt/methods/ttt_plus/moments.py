"""Mean and covariance of source features, and how far other features are from them.

The distances are |ms - mt|^2 / d of the means and CORAL, |Cs - Ct|^2 / 4 d^2, of the covariances. Both depend on the
scale of the features, and even source images have distances of their own that shrink with their number n. Each is
therefore measured in units of what n source images show on average, were they normally distributed:
E |ms - mt|^2 = tr Cs / n and E |Cs - Ct|^2 = ((tr Cs)^2 + |Cs|^2) / (n - 1).
"""

import torch
from torch import Tensor, nn

MEAN_SHARE = 0.5  # of the distance of means beside that of covariances, as in the original


class SourceMoments(nn.Module):
    """Mean and covariance of source rows `(N, d)`, as buffers; `known` after `remember`."""

    mean: Tensor
    covariance: Tensor
    rows: Tensor

    def __init__(self, channels: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("covariance", torch.zeros(channels, channels))
        self.register_buffer("rows", torch.zeros(()))

    @property
    def known(self) -> bool:
        """Whether there is anything to compare with."""
        return bool(self.rows > 0)

    @torch.no_grad()
    def remember(self, rows: Tensor) -> None:
        """Take the moments of source rows `(N, d)`."""
        self.mean.copy_(rows.mean(0))
        self.covariance.copy_(covariance(rows))
        self.rows.fill_(len(rows))

    def forget(self) -> None:
        """Have nothing to compare with."""
        self.rows.zero_()

    def distance(self, rows: Tensor) -> Tensor:
        """How far rows `(n, d)` are from the source: for its own about 1.5, of which 1 by covariances."""
        of_means, of_covariances = self.distances(rows)
        return of_covariances + MEAN_SHARE * of_means

    def distances(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Distances of means and of covariances, in units of those of as many source rows: about 1 for source."""
        trace = self.covariance.diagonal().sum()
        tiny = torch.finfo(rows.dtype).tiny
        expected_mean = trace / len(rows)
        expected_covariance = (trace.square() + self.covariance.square().sum()) / max(1, len(rows) - 1)
        d = rows.shape[1]
        of_means = d * mean_distance(self.mean, rows.mean(0)) / expected_mean.clamp(min=tiny)
        of_covariances = 4 * d**2 * coral_distance(self.covariance, covariance(rows))
        return of_means, of_covariances / expected_covariance.clamp(min=tiny)


def covariance(rows: Tensor) -> Tensor:
    """Covariance `(d, d)` of rows `(N, d)`, with N - 1; zero for a single row."""
    centred = rows - rows.mean(0)
    return centred.T @ centred / max(1, len(rows) - 1)


def mean_distance(source: Tensor, target: Tensor) -> Tensor:
    """Squared distance of two means `(d,)`, per dimension."""
    return (source - target).square().mean()


def coral_distance(source: Tensor, target: Tensor) -> Tensor:
    """CORAL: squared distance of two covariances `(d, d)`, divided by 4 d^2."""
    return (source - target).square().mean() / 4
