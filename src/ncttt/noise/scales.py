"""The choice of the two scales: what label an out-view can expect, and the least loss a discriminator can have."""

import math

import torch
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.noise.families import check_dim, check_scales


def expected_label_as_printed(beta: Tensor | float, dim: int) -> Tensor:
    """Expected label of an out-view by the formula in the paper, where E||noise||^2 lacks the factor dim."""
    beta = _betas(beta, dim)
    return torch.sigmoid(dim * beta.log() - (beta.square() - 1) / 2)


def expected_label_corrected(beta: Tensor | float, dim: int) -> Tensor:
    """The same with E||noise||^2 put right: the label of the expected logit, still not the expected label."""
    beta = _betas(beta, dim)
    return torch.sigmoid(dim * (beta.log() - (beta.square() - 1) / 2))


def expected_label(beta: Tensor | float, dim: int) -> Tensor:
    """True expected label of an out-view, by quadrature over the chi-square law of its squared length.

    >>> [round(expected_label(beta, 16).item(), 3) for beta in (1.5, 2)]
    [0.187, 0.042]
    """
    beta = _betas(beta, dim)
    squared, weight = _chi_square_grid(beta, dim)
    logit = dim * beta.log().unsqueeze(-1) - (beta.square().unsqueeze(-1) - 1) / 2 * squared
    return (weight * torch.sigmoid(logit)).sum(-1)


def smallest_beta(dim: int, tolerance: float = 0.05) -> float:
    """The smallest `sigma_out / sigma_in` whose true expected out-view label is at most `tolerance`.

    >>> round(smallest_beta(16, 0.05), 2)
    1.94
    """
    if not 0 < tolerance < 0.5:
        raise InputError(f"tolerance must lie between 0 and 0.5, the label at beta = 1; found {tolerance}")
    low, high = 1.0, 2.0
    while expected_label(high, dim) > tolerance:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_label(middle, dim) > tolerance else (low, middle)
    return high


def bayes_floor(sigma_in: float, sigma_out: float, dim: int) -> float:
    """Mean entropy of the Gaussian soft labels over both kinds of view: no discriminator has a lower Eq. 8.

    >>> round(bayes_floor(0.5, 1.0, 16), 4)
    0.0756
    """
    check_scales(sigma_in, sigma_out)
    if sigma_in == 0:
        return 0.0
    beta = _betas(sigma_out / sigma_in, dim)
    squared, weight = _chi_square_grid(beta, dim)
    floor = 0.0
    for view in (1 - beta.pow(-2), beta.square() - 1):  # in-views, out-views: ||noise|| in units of their own sigma
        label = torch.sigmoid(dim * beta.log() - view / 2 * squared)
        entropy = torch.special.entr(label) + torch.special.entr(1 - label)
        floor += 0.5 * (weight * entropy).sum().item()
    return floor


def _betas(beta: Tensor | float, dim: int) -> Tensor:
    check_dim(dim)
    beta = torch.as_tensor(beta, dtype=torch.float64)
    if not bool((beta.isfinite() & (beta >= 1)).all()):
        raise InputError(f"beta = sigma_out / sigma_in must be finite and at least 1; found {beta.tolist()}")
    return beta


def _chi_square_grid(beta: Tensor, dim: int, points: int = 20_001) -> tuple[Tensor, Tensor]:
    """Chi-square values `(..., points)` and their weights: the trapezoid rule over the logarithm of the value.

    The grid reaches from the shell of the in-views to that of the out-views and far beyond either, because at large
    beta the label of an out-view is decided by its rare short vectors.
    """
    spread = 12 * math.sqrt(2 / dim) + 80 / dim
    low = math.log(dim) - 2 * beta.log() - spread
    high = torch.full_like(low, math.log(dim) + spread)
    line = torch.linspace(0, 1, points, dtype=beta.dtype, device=beta.device)
    log_value = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * line
    half = dim / 2
    log_weight = half * log_value - log_value.exp() / 2 - half * math.log(2) - math.lgamma(half)
    step = ((high - low) / (points - 1)).unsqueeze(-1)
    return log_value.exp(), log_weight.exp() * step
