"""Mean and covariance of source features, and how far other features are from them.

The distances are |ms - mt|^2 / d of the means and CORAL, |Cs - Ct|^2 / 4 d^2, of the covariances. Both depend on the
scale of the features, and even source images have distances of their own that shrink with their number n. Each is
therefore measured in units of what n source images show on average, were they normally distributed:
E |ms - mt|^2 = tr Cs / n and E |Cs - Ct|^2 = ((tr Cs)^2 + |Cs|^2) / (n - 1). A queue of the newest test features gives
small batches moments worth aligning.
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


class FeatureQueue(nn.Module):
    """The newest `size` rows, those of the batch at hand first.

    Several steps on one batch replace its rows, which are recognised by a signature of its images. The buffers belong
    to a stream, not to the model, so they are not saved with it.
    """

    rows: Tensor
    filled: Tensor
    newest: Tensor
    signature: Tensor

    def __init__(self, size: int, channels: int):
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, channels), persistent=False)
        self.register_buffer("filled", torch.zeros((), dtype=torch.long), persistent=False)
        self.register_buffer("newest", torch.zeros((), dtype=torch.long), persistent=False)
        self.register_buffer("signature", torch.zeros(3), persistent=False)

    def join(self, images: Tensor, rows: Tensor, size: int) -> Tensor:
        """The batch's rows `(B, d)` followed by past ones, up to `size` of them; the batch is never cut."""
        signature = torch.stack([images.mean(), images.std(correction=0), images[-1].mean()])
        again = torch.equal(signature, self.signature)
        past = self.rows[int(self.newest) if again else 0 : int(self.filled)]
        joined = torch.cat([rows, past.to(rows)[: max(0, size - len(rows))]])
        self._keep(joined.detach(), len(rows))
        self.signature.copy_(signature)
        return joined

    @torch.no_grad()
    def _keep(self, joined: Tensor, newest: int) -> None:
        kept = min(len(joined), len(self.rows))
        self.rows[:kept] = joined[:kept]
        self.filled.fill_(kept)
        self.newest.fill_(min(newest, kept))
