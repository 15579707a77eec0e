"""Devices by name, and what is said of those that are not here."""

import pytest
import torch

from ncttt import InputError
from ncttt.base.devices import available


def test_the_processor_is_always_here():
    assert available("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:99", "nonsense", "cpu:x", ""])
def test_what_is_not_here_is_told_in_one_line(name):
    with pytest.raises(InputError) as error:
        available(name)
    assert str(error.value).startswith(f"device {name!r} cannot be used here: ")
    assert "\n" not in str(error.value)
