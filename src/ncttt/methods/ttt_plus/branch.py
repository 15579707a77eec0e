"""The branch of TTT++: a projection head, what is known of the source, a queue of test features, and its task.

The task is SimCLR's: of all other views in the batch, recognise the one of the same image.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.methods.ttt_plus.moments import FeatureQueue, SourceMoments
from ncttt.methods.ttt_plus.views import two_views
from ncttt.model.branched import Branched, Features
from ncttt.model.features import pooled


class ContrastBranch(nn.Module):
    """The projection head, the source's moments at both places, and the queue of test features."""

    def __init__(self, features: Features, *, channels: int, hidden: int, queue: int):
        super().__init__()
        self.width = pooled(features).shape[1]
        self.projector = nn.Sequential(nn.Linear(self.width, hidden), nn.ReLU(), nn.Linear(hidden, channels))
        self.feature_moments, self.projection_moments = SourceMoments(self.width), SourceMoments(channels)
        self.queue = FeatureQueue(queue, self.width + channels)

    def rows(self, features: Features) -> Tensor:
        """Pooled features and their projections side by side: `(B, width + channels)`."""
        vectors = pooled(features)
        return torch.cat([vectors, self.projector(vectors)], dim=1)

    def remember(self, rows: Tensor) -> None:
        """Take the source's moments from such rows."""
        features, projections = rows.tensor_split([self.width], dim=1)
        self.feature_moments.remember(features)
        self.projection_moments.remember(projections)

    def forget(self) -> None:
        """Know no source moments."""
        self.feature_moments.forget()
        self.projection_moments.forget()

    def alignments(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """How far the features and the projections in such rows are from the source's."""
        features, projections = rows.tensor_split([self.width], dim=1)
        return self.feature_moments.distance(features), self.projection_moments.distance(projections)


def contrast_branch(model: Branched) -> ContrastBranch:
    """The model's branch."""
    assert isinstance(model.branch, ContrastBranch)
    return model.branch


def project_views(model: Branched, images: Tensor) -> Tensor:
    """Projections `(2 * B, channels)` of two views of each image."""
    if not model.normalises:  # such a model may be fed normalised images, which have no colours to change
        low, high = (bound.item() for bound in torch.aminmax(images))
        if low < -0.01 or high > 1.01:
            raise InputError(
                f"the views of TTT++ need images in [0, 1]; found {low:.3g} to {high:.3g}; let the model normalise "
                "them itself: ncttt.attach(..., mean=, std=)"
            )
    return contrast_branch(model).projector(pooled(model.features(two_views(images))))


def contrastive_loss(projected: Tensor, temperature: float, base_temperature: float | None = None) -> Tensor:
    """Mean cross-entropy of finding each view's partner; rows `(2 * B, d)`, first views first, in the same order.

    The logits are cosines divided by the temperature; a view is no candidate for itself. One image alone has loss 0.
    With a base temperature the loss is multiplied by temperature / base_temperature, as in supervised contrast.
    """
    loss = F.cross_entropy(_cosines(projected) / temperature, _partners(projected))
    return loss if base_temperature is None else loss * (temperature / base_temperature)


def contrastive_accuracy(projected: Tensor) -> Tensor:
    """The share of views `(2 * B, d)` whose nearest neighbour is their partner."""
    return (_cosines(projected).argmax(1) == _partners(projected)).float().mean()


def _cosines(projected: Tensor) -> Tensor:
    """Cosines `(2 * B, 2 * B)` of all pairs, with minus infinity on the diagonal."""
    unit = F.normalize(projected, dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    return (unit @ unit.T).masked_fill(itself, -torch.inf)


def _partners(projected: Tensor) -> Tensor:
    return torch.arange(len(projected), device=projected.device).roll(len(projected) // 2)
