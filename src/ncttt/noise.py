"""The mathematics of noise contrast: noise families, soft labels, the choice of their scales, and the KDE behind it.

Equation numbers are those of the NC-TTT paper. A noise vector has `dim` independent coordinates in the last axis;
`sigma` is always the standard deviation of one coordinate, in every family, so that families can be exchanged.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ncttt.errors import InputError, nearest


class Noise(ABC):
    """A family of noise with full support, so that the posterior of two scales is finite everywhere."""

    @abstractmethod
    def sample(self, like: Tensor, sigma: float, generator: torch.Generator | None = None) -> Tensor:
        """Independent noise for every element of `like`, in its shape, type and device."""

    @abstractmethod
    def _log_density(self, noise: Tensor, sigma: float) -> Tensor:
        """Log density of each coordinate, in the shape of `noise`."""

    def log_prob(self, noise: Tensor, sigma: float) -> Tensor:
        """Log density of noise vectors `(..., dim)`, as `(...)`."""
        _check_scale("sigma", sigma, positive=True)
        return self._log_density(_vectors("noise", noise), sigma).sum(-1)

    def log_ratio(self, noise: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
        """`log p_in - log p_out` of noise vectors `(..., dim)`; coordinates are compared before they are summed."""
        ratio = self._log_density(noise, sigma_in) - self._log_density(noise, sigma_out)
        return ratio.sum(-1, dtype=torch.float64).to(noise.dtype)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise, the paper's."""

    def sample(self, like: Tensor, sigma: float, generator: torch.Generator | None = None) -> Tensor:
        return torch.empty_like(like).normal_(generator=generator).mul_(sigma)

    def _log_density(self, noise: Tensor, sigma: float) -> Tensor:
        return -0.5 * (noise / sigma).square() - math.log(sigma * math.sqrt(2 * math.pi))

    def log_ratio(self, noise: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
        """Eq. 6 in units of `sigma_in`; the sum runs in float64, because `dim` terms nearly cancel at the border."""
        log_beta = math.log(sigma_out / sigma_in)
        squared = (noise / sigma_in).square().sum(-1, dtype=torch.float64)
        return (noise.shape[-1] * log_beta + 0.5 * math.expm1(-2 * log_beta) * squared).to(noise.dtype)


@dataclass(frozen=True)
class Laplace(Noise):
    """Double-exponential noise: sharper at zero and with heavier tails than the Gaussian."""

    def sample(self, like: Tensor, sigma: float, generator: torch.Generator | None = None) -> Tensor:
        uniform = torch.empty_like(like).uniform_(-1, 1, generator=generator)
        limit = 1 - torch.finfo(like.dtype).eps
        return -sigma / math.sqrt(2) * uniform.sign() * torch.log1p(-uniform.abs().clamp(max=limit))

    def _log_density(self, noise: Tensor, sigma: float) -> Tensor:
        return -math.sqrt(2) / sigma * noise.abs() - math.log(math.sqrt(2) * sigma)


@dataclass(frozen=True)
class StudentT(Noise):
    """Student's t with `df` > 2 degrees of freedom: polynomial tails, so far outliers keep a bounded logit ratio."""

    df: float = 5.0

    def __post_init__(self) -> None:
        if not self.df > 2 or math.isinf(self.df):
            raise InputError(f"StudentT needs finite df > 2, so that its variance exists; found df={self.df}")

    def _scale(self, sigma: float) -> float:
        return sigma * math.sqrt((self.df - 2) / self.df)

    def sample(self, like: Tensor, sigma: float, generator: torch.Generator | None = None) -> Tensor:
        # Bailey's polar method: exact for any df from two uniforms, so a generator is all it needs.
        radius = 1 - torch.empty_like(like).uniform_(generator=generator)
        angle = torch.empty_like(like).uniform_(0, 2 * math.pi, generator=generator)
        t = (self.df * (radius.pow(-2 / self.df) - 1)).sqrt() * angle.cos()
        return self._scale(sigma) * t

    def _log_density(self, noise: Tensor, sigma: float) -> Tensor:
        df, scale = self.df, self._scale(sigma)
        constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
        return constant - math.log(scale) - (df + 1) / 2 * torch.log1p((noise / scale).square() / df)


NOISES: dict[str, type[Noise]] = {"gaussian": Gaussian, "laplace": Laplace, "student_t": StudentT}


def family(noise: str | Noise) -> Noise:
    """The noise family of that name, with its default settings; a family passes through.

    >>> family("student_t")
    StudentT(df=5.0)
    """
    if isinstance(noise, Noise):
        return noise
    if noise not in NOISES:
        raise InputError(f"no noise family {noise!r}{nearest(noise, NOISES)}")
    return NOISES[noise]()


def soft_label_logit(noise: Tensor, sigma_in: float, sigma_out: float, kind: str | Noise = "gaussian") -> Tensor:
    """Logit that noise vectors `(..., dim)` are in-distribution (Eq. 6), as `(...)`.

    At `sigma_in = 0` it is the limit: +inf for no noise at all, -inf for any other.

    >>> soft_label_logit(torch.zeros(1, 16), 0.5, 1.0)  # 16 log 2
    tensor([11.0904])
    """
    check_scales(sigma_in, sigma_out)
    noise = _vectors("noise", noise)
    if sigma_in == 0:
        return torch.where(noise.eq(0).all(-1), math.inf, -math.inf).to(noise.dtype)
    return family(kind).log_ratio(noise, sigma_in, sigma_out)


def soft_label(noise: Tensor, sigma_in: float, sigma_out: float, kind: str | Noise = "gaussian") -> Tensor:
    """Probability that noise vectors `(..., dim)` are in-distribution (Eq. 5, in the stable form of Eq. 6)."""
    return torch.sigmoid(soft_label_logit(noise, sigma_in, sigma_out, kind))


def in_distribution_radius(sigma_in: float, sigma_out: float, dim: int) -> float:
    """Length of Gaussian noise at which the soft label is one half (Eq. 7).

    >>> round(in_distribution_radius(0.5, 1.0, 16), 4)
    2.7191
    """
    check_scales(sigma_in, sigma_out)
    _check_dim(dim)
    if sigma_in == 0:
        return 0.0
    log_beta = math.log(sigma_out / sigma_in)
    return sigma_in * math.sqrt(2 * dim * log_beta / -math.expm1(-2 * log_beta))


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


def kde_log_density(points: Tensor, references: Tensor, sigma: float) -> Tensor:
    """Log of the kernel density estimate (Eq. 2) at points `(N, dim)` over references `(R, dim)`, as `(N,)`."""
    _check_scale("sigma", sigma, positive=True)
    if points.ndim != 2 or references.ndim != 2 or points.shape[1] != references.shape[1]:
        shapes = f"{tuple(points.shape)} and {tuple(references.shape)}"
        raise InputError(f"points and references must be (N, dim) and (R, dim); found {shapes}")
    distance = torch.cdist(points, references, compute_mode="donot_use_mm_for_euclid_dist") / sigma
    constant = math.log(len(references)) + points.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))
    return torch.logsumexp(-0.5 * distance.square(), dim=1) - constant


def kde_posterior_logit(points: Tensor, references: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
    """Logit of the exact posterior over all references (Eq. 4) at points `(N, dim)`, as `(N,)`."""
    check_scales(sigma_in, sigma_out)
    return kde_log_density(points, references, sigma_in) - kde_log_density(points, references, sigma_out)


def kde_posterior(points: Tensor, references: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
    """The exact posterior over all references (Eq. 4): what a perfect discriminator learns."""
    return torch.sigmoid(kde_posterior_logit(points, references, sigma_in, sigma_out))


def kde_nll(points: Tensor, references: Tensor, sigma: float) -> Tensor:
    """Mean negative log-likelihood under the estimate (Eq. 3): the objective that needs the source at test time."""
    return -kde_log_density(points, references, sigma).mean()


def contrastive_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy between discriminator logits and soft labels of one shape (Eq. 8)."""
    return F.binary_cross_entropy_with_logits(logits, labels)


def in_distribution_loss(logits: Tensor) -> Tensor:
    """Mean of `-log q` (Eq. 9), from discriminator logits of any shape."""
    return F.softplus(-logits).mean()


def check_scales(sigma_in: float, sigma_out: float) -> None:
    """Raise an `InputError` unless `0 <= sigma_in < sigma_out`, both finite."""
    _check_scale("sigma_in", sigma_in, positive=False)
    _check_scale("sigma_out", sigma_out, positive=True)
    if sigma_out <= sigma_in:
        raise InputError(f"sigma_out must exceed sigma_in; found sigma_in={sigma_in}, sigma_out={sigma_out}")


def _check_scale(name: str, sigma: float, positive: bool) -> None:
    if not math.isfinite(sigma) or sigma < 0 or (positive and sigma == 0):
        raise InputError(f"{name} must be finite and {'> 0' if positive else '>= 0'}; found {sigma}")


def _check_dim(dim: int) -> None:
    if dim < 1:
        raise InputError(f"dim must be a positive number of coordinates; found {dim}")


def _vectors(name: str, tensor: Tensor) -> Tensor:
    if tensor.ndim == 0 or tensor.shape[-1] == 0 or not tensor.is_floating_point():
        found = f"{tuple(tensor.shape)} {tensor.dtype}"
        raise InputError(f"{name} must be floating-point vectors (..., dim) with dim >= 1; found {found}")
    return tensor


def _betas(beta: Tensor | float, dim: int) -> Tensor:
    _check_dim(dim)
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
    log_value = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * torch.linspace(0, 1, points, dtype=beta.dtype)
    half = dim / 2
    log_weight = half * log_value - log_value.exp() / 2 - half * math.log(2) - math.lgamma(half)
    step = ((high - low) / (points - 1)).unsqueeze(-1)
    return log_value.exp(), log_weight.exp() * step
