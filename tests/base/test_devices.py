"""Devices by name, and what is said of those that are not here."""

import pytest
import torch

from ncttt import InputError
from ncttt.base.devices import available, fast_kernels, pinned


def test_the_processor_is_always_here():
    assert available("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:99", "nonsense", "cpu:x", ""])
def test_what_is_not_here_is_told_in_one_line(name):
    with pytest.raises(InputError) as error:
        available(name)
    assert str(error.value).startswith(f"device {name!r} cannot be used here: ")
    assert "\n" not in str(error.value)


def flags() -> tuple[bool, bool, bool]:
    cudnn = torch.backends.cudnn
    return torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark


def test_fast_kernels_are_for_gpus_and_end_with_their_block():
    before = flags()
    assert before != (True, True, True)
    for on, device in ((False, "cuda"), (True, "cpu")):
        with fast_kernels(on, device):
            assert flags() == before
    with fast_kernels(True, torch.device("cuda:1")):
        assert flags() == (True, True, True)
    assert flags() == before


def test_fast_kernels_end_with_an_error_too():
    before = flags()
    with pytest.raises(InputError), fast_kernels(True, "cuda"):
        available("nonsense")
    assert flags() == before


def test_only_what_goes_to_a_gpu_is_pinned(monkeypatch):
    tensor, copy = torch.zeros(2), torch.ones(2)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: copy)  # it needs a GPU
    assert pinned(tensor, "cpu") is tensor
    assert pinned(tensor, "cuda:1") is copy
