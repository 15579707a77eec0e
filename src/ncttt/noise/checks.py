"""What the functions of noise accept."""

import math

from torch import Tensor

from ncttt.base.errors import InputError


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
        found = f"{tuple(tensor.shape)} {tensor.dtype}"
        raise InputError(f"{name} must be floating-point vectors (..., dim) with dim >= 1; found {found}")
    return tensor
