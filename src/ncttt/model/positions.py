"""Features as positions `(B, P, C)`, whether they are maps `(B, C, H, W)`, tokens `(B, N, C)` or vectors `(B, C)`."""

import torch
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.model.branched import Features


def as_tuple(features: Features) -> tuple[Tensor, ...]:
    """Features of one or several layers, as a tuple."""
    return (features,) if isinstance(features, Tensor) else features


def as_positions(features: Tensor) -> Tensor:
    """Maps, tokens or vectors as `(B, P, C)`; without a copy for maps in channels_last."""
    if features.ndim == 2:
        return features.unsqueeze(1)
    if features.ndim == 3:
        return features
    if features.ndim == 4:
        return features.permute(0, 2, 3, 1).flatten(1, 2)
    raise InputError(f"features must be (B, C), (B, N, C) or (B, C, H, W); found {tuple(features.shape)}")


def pooled(features: Features) -> Tensor:
    """Features averaged over positions, those of several layers side by side: `(B, C)`."""
    return torch.cat([as_positions(layer).mean(1) for layer in as_tuple(features)], dim=1)
