"""SimCLR's contrastive task: of all other views in the batch, recognise the one of the same image."""

import torch
from torch import Tensor
from torch.nn import functional as F


def contrastive_loss(projected: Tensor, temperature: float) -> Tensor:
    """Mean cross-entropy of finding each view's partner; rows `(2 * B, d)`, first views first, in the same order.

    The logits are cosines divided by the temperature; a view is no candidate for itself. One image alone has loss 0.
    """
    return F.cross_entropy(_cosines(projected) / temperature, _partners(projected))


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
