"""Devices by name, refused with a clear error where this machine does not have them."""

import torch

from ncttt.base.errors import InputError


def available(device: str) -> torch.device:
    """The device of that name, if this machine has it."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from None
