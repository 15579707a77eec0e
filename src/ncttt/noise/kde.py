"""The kernel density estimate that noise contrast stands for (Eq. 2 to 4)."""

import math

import torch
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.noise.families import check_scale, check_scales, check_vectors


def kde_log_density(points: Tensor, references: Tensor, sigma: float) -> Tensor:
    """Log of the kernel density estimate (Eq. 2) at points `(N, dim)` over references `(R, dim)`, as float64 `(N,)`."""
    check_scale("sigma", sigma, positive=True)
    check_vectors("points", points)
    check_vectors("references", references)
    if points.ndim != 2 or references.ndim != 2 or points.shape[1] != references.shape[1] or not len(references):
        shapes = f"{tuple(points.shape)} and {tuple(references.shape)}"
        raise InputError(f"points and references must be (N, dim) and (R, dim) with R >= 1; found {shapes}")
    # In float64, because the densities of two scales nearly cancel in the posterior.
    exact = points.double(), references.double()
    distance = torch.cdist(*exact, compute_mode="donot_use_mm_for_euclid_dist") / sigma
    constant = math.log(len(references)) + points.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))
    return torch.logsumexp(-0.5 * distance.square(), dim=1) - constant


def kde_posterior_logit(points: Tensor, references: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
    """Logit of the exact posterior over all references (Eq. 4) at points `(N, dim)`, as `(N,)`."""
    check_scales(sigma_in, sigma_out)
    inside, outside = (kde_log_density(points, references, sigma) for sigma in (sigma_in, sigma_out))
    return (inside - outside).to(points.dtype)


def kde_posterior(points: Tensor, references: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
    """The exact posterior over all references (Eq. 4): what a perfect discriminator learns."""
    return torch.sigmoid(kde_posterior_logit(points, references, sigma_in, sigma_out))


def kde_nll(points: Tensor, references: Tensor, sigma: float) -> Tensor:
    """Mean negative log-likelihood under the estimate (Eq. 3): the objective that needs the source at test time."""
    return -kde_log_density(points, references, sigma).mean()
