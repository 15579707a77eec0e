"""Means and variances of features, channel by channel, and how those of two sources become one.

Moments are a pair (mean, variance) that broadcasts over features `(B, C, ...)`: `(1, C, 1, ...)` of a batch or of a
layer's buffers, `(B, C, 1, ...)` of each image. Variances are biased.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function
from torch.nn.modules.batchnorm import _BatchNorm

Moments = tuple[Tensor, Tensor]


def values_of(features: Tensor) -> int:
    """How many values a channel of features `(B, C, ...)` has."""
    return features.numel() // features.shape[1]


def buffer_moments(layer: _BatchNorm, features: Tensor, now: Callable[[Tensor], Tensor] = lambda it: it) -> Moments:
    """The moments that a layer's buffers hold, or those that `now` says they have, in the shape of features."""
    assert layer.running_mean is not None
    assert layer.running_var is not None
    shape = [1, -1] + [1] * (features.ndim - 2)
    return now(layer.running_mean).view(shape), now(layer.running_var).view(shape)


def moments_along(features: Tensor, axes: Sequence[int]) -> Moments:
    """Mean and biased variance along axes, which stay as axes of size one.

    >>> moments_along(torch.tensor([[0.0, 2.0], [2.0, 2.0]]), [0])
    (tensor([[1., 2.]]), tensor([[1., 0.]]))
    """
    return _Moments.apply(features, axes)  # type: ignore[return-value]


def batch_moments(features: Tensor) -> Moments:
    """Those of all values of a channel."""
    return moments_along(features, [axis for axis in range(features.ndim) if axis != 1])


def image_moments(features: Tensor) -> Moments:
    """Those of the positions of each image by itself; a single value is its own mean and has no variance."""
    axes = list(range(2, features.ndim))
    if not axes:  # PyTorch takes no axes for all of them
        return features, torch.zeros_like(features)
    return moments_along(features, axes)


def pooled(means: Tensor, variances: Tensor) -> Moments:
    """The moments `(1, C, ...)` of all values together, from those `(N, C, ...)` of images with as many values each."""
    mean = means.mean(0, keepdim=True)
    return mean, (variances + (means - mean).square()).mean(0, keepdim=True)


def blended(source: Moments, batch: Moments, share: float) -> Moments:
    """`(1 - share) * source + share * batch`, means and variances each."""
    return torch.lerp(source[0], batch[0], share), torch.lerp(source[1], batch[1], share)


def mixture(source: Moments, batch: Moments, share: float) -> Moments:
    """The moments of values of which a `share` comes from the batch, and so with the distance of the two means.

    Unlike a blend it loses nothing of the variance when images come one by one: what differs between them counts.
    """
    mean, var = blended(source, batch, share)
    return mean, var + share * (1 - share) * (batch[0] - source[0]).square()


def shrunk(source: Moments, features: Tensor, k: float) -> Moments:
    """Instance-aware BatchNorm (Gong et al., 2022): an image's own moments, drawn to the source's by k standard errors.

    With L positions, an image of the source has a mean with the error `sqrt(var / L)` and an unbiased variance with the
    error `sqrt(2 var^2 / (L - 1))`. What goes beyond k of them counts, by soft shrinkage.
    """
    positions = values_of(features[:1])
    mean, var = image_moments(features)
    unbiased = var * (positions / (positions - 1))
    mean_error, var_error = (source[1] / positions).sqrt(), source[1] * (2 / (positions - 1)) ** 0.5
    return (
        source[0] + _soft(mean - source[0], k * mean_error),
        source[1] + _soft(unbiased - source[1], k * var_error),
    )


def as_source(layer: _BatchNorm, features: Tensor, moments: Moments) -> Tensor:
    """Features changed so that a layer's buffers do to them what these moments would do.

    Working on the input, not on the layer's forward, keeps subclasses with an activation of their own intact.
    """
    source_mean, source_var = buffer_moments(layer, features)
    mean, var = moments
    scale = ((source_var + layer.eps) / (var + layer.eps)).sqrt()
    return torch.addcmul(source_mean - mean * scale, features.to(source_mean.dtype), scale).to(features.dtype)


class _Moments(Function):
    """Mean and variance along axes, whose gradient is one pass over the features; PyTorch's own takes six."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, axes: Sequence[int]) -> Moments:
        # Two plain means are several times faster here than torch.var_mean.
        mean = features.mean(list(axes), keepdim=True)
        ctx.save_for_backward(features, mean)
        return mean, (features - mean).square_().mean(list(axes), keepdim=True)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        features, mean = ctx.saved_tensors
        mean_gradient, var_gradient = gradients
        values = features.numel() // mean.numel()
        slope = var_gradient * (2 / values)
        return torch.addcmul(mean_gradient / values - slope * mean, features, slope), None


def _soft(values: Tensor, threshold: Tensor) -> Tensor:
    return values.sign() * (values.abs() - threshold).clamp_min(0)
