"""Families of noise: how to draw from them, their densities, and what scales they accept."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from ncttt.base.errors import InputError, nearest


class Noise(ABC):
    """A family of noise with full support, so that the posterior of two scales is finite everywhere."""

    def sample(self, like: Tensor, sigma: float, generator: torch.Generator | None = None) -> Tensor:
        """Independent noise for every element of `like`, in its shape, type and device."""
        check_scale("sigma", sigma, positive=False)
        return self._standard(like, generator).mul_(sigma)

    @abstractmethod
    def _standard(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Noise of standard deviation one, a new tensor like `like`."""

    @abstractmethod
    def _log_density(self, noise: Tensor, sigma: float) -> Tensor:
        """Log density of each coordinate, in the shape of `noise`."""

    def log_prob(self, noise: Tensor, sigma: float) -> Tensor:
        """Log density of noise vectors `(..., dim)`, as `(...)`."""
        check_scale("sigma", sigma, positive=True)
        return self._log_density(check_vectors("noise", noise), sigma).sum(-1)

    def _log_ratio(self, noise: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
        """`log p_in - log p_out` of noise vectors `(..., dim)`; coordinates are compared before they are summed."""
        ratio = self._log_density(noise, sigma_in) - self._log_density(noise, sigma_out)
        return ratio.sum(-1, dtype=torch.float64).to(noise.dtype)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise, the paper's."""

    def _standard(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.empty_like(like).normal_(generator=generator)

    def _log_density(self, noise: Tensor, sigma: float) -> Tensor:
        return -0.5 * (noise / sigma).square() - math.log(sigma * math.sqrt(2 * math.pi))

    def _log_ratio(self, noise: Tensor, sigma_in: float, sigma_out: float) -> Tensor:
        """Eq. 6 in units of `sigma_in`; the sum runs in float64, because `dim` terms nearly cancel at the border."""
        log_beta = math.log(sigma_out / sigma_in)
        squared = (noise / sigma_in).square().sum(-1, dtype=torch.float64)
        return (noise.shape[-1] * log_beta + 0.5 * math.expm1(-2 * log_beta) * squared).to(noise.dtype)


@dataclass(frozen=True)
class Laplace(Noise):
    """Double-exponential noise: sharper at zero and with heavier tails than the Gaussian."""

    def _standard(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        uniform = torch.empty_like(like).uniform_(-1, 1, generator=generator)
        limit = 1 - torch.finfo(like.dtype).eps
        return -math.sqrt(0.5) * uniform.sign() * torch.log1p(-uniform.abs().clamp(max=limit))

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

    def _standard(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        # Bailey's polar method: exact for any df from two uniforms, so a generator is all it needs.
        radius = 1 - torch.empty_like(like).uniform_(generator=generator)
        angle = torch.empty_like(like).uniform_(0, 2 * math.pi, generator=generator)
        t = (self.df * (radius.pow(-2 / self.df) - 1)).sqrt() * angle.cos()
        return self._scale(1.0) * t

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
    if not isinstance(noise, str) or noise not in NOISES:
        raise InputError(f"no noise family {noise!r}{nearest(str(noise), NOISES)}")
    return NOISES[noise]()


def check_scales(sigma_in: float, sigma_out: float) -> None:
    """Raise an `InputError` unless `0 <= sigma_in < sigma_out`, both finite."""
    check_scale("sigma_in", sigma_in, positive=False)
    check_scale("sigma_out", sigma_out, positive=True)
    if sigma_out <= sigma_in:
        raise InputError(f"sigma_out must exceed sigma_in; found sigma_in={sigma_in}, sigma_out={sigma_out}")


def check_scale(name: str, sigma: float, positive: bool) -> None:
    if not math.isfinite(sigma) or sigma < 0 or (positive and sigma == 0):
        raise InputError(f"{name} must be finite and {'> 0' if positive else '>= 0'}; found {sigma}")


def check_dim(dim: int) -> None:
    if dim < 1:
        raise InputError(f"dim must be a positive number of coordinates; found {dim}")


def check_vectors(name: str, tensor: Tensor) -> Tensor:
    if tensor.ndim == 0 or tensor.shape[-1] == 0 or not tensor.is_floating_point():
        given = f"{tuple(tensor.shape)} {tensor.dtype}"
        raise InputError(f"{name} must be floating-point vectors (..., dim) with dim >= 1; found {given}")
    return tensor
