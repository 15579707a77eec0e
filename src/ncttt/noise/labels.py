"""Soft labels of noisy views (Eq. 5 to 7) and the two losses (Eq. 8 and 9)."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt.noise.families import Noise, check_dim, check_scales, check_vectors, family


def soft_label_logit(noise: Tensor, sigma_in: float, sigma_out: float, kind: str | Noise = "gaussian") -> Tensor:
    """Logit that noise vectors `(..., dim)` are in-distribution (Eq. 6), as `(...)`.

    At `sigma_in = 0` it is the limit: +inf for no noise at all, -inf for any other.

    >>> soft_label_logit(torch.zeros(1, 16), 0.5, 1.0)  # 16 log 2
    tensor([11.0904])
    """
    check_scales(sigma_in, sigma_out)
    noise = check_vectors("noise", noise)
    if sigma_in == 0:
        return torch.where(noise.eq(0).all(-1), math.inf, -math.inf).to(noise.dtype)
    return family(kind)._log_ratio(noise, sigma_in, sigma_out)


def view_logit(
    from_inner: Tensor, from_outer: Tensor, sigma_in: float, sigma_out: float, kind: str | Noise = "gaussian"
) -> Tensor:
    """The logit of views whose distances from the two places that the noises start at differ, `(..., dim)` each.

    Where both noises are added to one place this is `soft_label_logit` of the noise.

    >>> view_logit(torch.zeros(1, 16), torch.zeros(1, 16), 0.5, 1.0)
    tensor([11.0904])
    """
    check_scales(sigma_in, sigma_out)
    if sigma_in == 0:
        return soft_label_logit(from_inner, sigma_in, sigma_out, kind)
    of = family(kind)
    terms = of._log_density(from_inner, sigma_in) - of._log_density(from_outer, sigma_out)
    return terms.sum(-1, dtype=torch.float64).to(from_inner.dtype)


def soft_label(noise: Tensor, sigma_in: float, sigma_out: float, kind: str | Noise = "gaussian") -> Tensor:
    """Probability that noise vectors `(..., dim)` are in-distribution (Eq. 5, in the stable form of Eq. 6)."""
    return torch.sigmoid(soft_label_logit(noise, sigma_in, sigma_out, kind))


def in_distribution_radius(sigma_in: float, sigma_out: float, dim: int) -> float:
    """Length of Gaussian noise at which the soft label is one half (Eq. 7).

    >>> round(in_distribution_radius(0.5, 1.0, 16), 4)
    2.7191
    """
    check_scales(sigma_in, sigma_out)
    check_dim(dim)
    if sigma_in == 0:
        return 0.0
    log_beta = math.log(sigma_out / sigma_in)
    return sigma_in * math.sqrt(2 * dim * log_beta / -math.expm1(-2 * log_beta))


def contrastive_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy between discriminator logits and soft labels of one shape (Eq. 8)."""
    return F.binary_cross_entropy_with_logits(logits, labels)


def in_distribution_loss(logits: Tensor) -> Tensor:
    """Mean of `-log q` (Eq. 9), from discriminator logits of any shape."""
    return F.softplus(-logits).mean()
