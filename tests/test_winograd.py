"""Winograd's gradients against PyTorch's own."""

import pytest
import torch
from torch.nn import functional as F

from ncttt import models
from ncttt.models import winograd
from ncttt.models.winograd import FEWEST_CHANNELS, Conv3x3


def gradients(conv, images, slopes):
    images = images.clone().requires_grad_()
    conv.zero_grad()
    out = conv(images)
    out.backward(slopes)
    return out.detach(), images.grad, conv.weight.grad.clone()


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (8, 12), (16, 4)])
@pytest.mark.parametrize("chunk", [1, 2**16, 2**30])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_gradients_are_pytorchs(monkeypatch, rows, columns, chunk, layout):
    monkeypatch.setattr(winograd, "CHUNK", chunk)
    torch.manual_seed(0)
    conv = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS + 5).double().to(memory_format=layout)
    images = torch.randn(17, FEWEST_CHANNELS, rows, columns, dtype=torch.float64).to(memory_format=layout)
    slopes = torch.randn(17, FEWEST_CHANNELS + 5, rows, columns, dtype=torch.float64)
    fast = gradients(conv, images, slopes)
    monkeypatch.setattr(winograd, "FEWEST_CHANNELS", 10**6)
    usual = gradients(conv, images, slopes)
    assert torch.equal(fast[0], usual[0])
    for ours, theirs in zip(fast[1:], usual[1:], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_single_precision_is_enough():
    torch.manual_seed(0)
    conv = Conv3x3(192, 192)
    images, slopes = torch.randn(2, 16, 192, 8, 8)
    ours = gradients(conv, images, slopes)
    exact = gradients(conv.double(), images.double(), slopes.double())
    for single, double in zip(ours, exact, strict=True):
        assert (single - double).abs().max() < 1e-4 * double.abs().max()


def uses_winograd(conv, images):
    return type(conv(images).grad_fn).__name__ == "_ConvolutionBackward"


def test_it_is_used_only_where_it_pays():
    wide = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS)
    maps = torch.rand(8, FEWEST_CHANNELS, 8, 8)
    assert uses_winograd(wide, maps)
    assert not uses_winograd(wide, torch.rand(8, FEWEST_CHANNELS, 6, 8)), "a map that tiles do not fill"
    assert not uses_winograd(wide, torch.rand(8, FEWEST_CHANNELS, 32, 32)), "a large map"
    assert not uses_winograd(Conv3x3(8, FEWEST_CHANNELS), torch.rand(8, 8, 8, 8)), "few channels"
    assert not uses_winograd(wide, maps[:1, :, :4, :4]), "a single tile"
    with torch.no_grad():
        assert wide(maps).grad_fn is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not uses_winograd(wide, maps)


def test_a_frozen_kernel_gets_no_gradient_but_its_maps_do():
    conv = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS).requires_grad_(False)
    maps = torch.rand(32, FEWEST_CHANNELS, 4, 4, requires_grad=True)
    conv(maps).sum().backward()
    assert conv.weight.grad is None
    torch.testing.assert_close(
        maps.grad, torch.autograd.grad(F.conv2d(maps, conv.weight, padding=1).sum(), maps)[0], rtol=1e-4, atol=1e-4
    )


def test_the_small_network_has_it():
    assert uses_winograd(models.small().layer4[1].block1[0], torch.rand(32, 192, 4, 4))


def test_second_derivatives_are_right_too(monkeypatch):
    monkeypatch.setattr(winograd, "FEWEST_CHANNELS", 2)
    conv = Conv3x3(2, 3).double()
    maps = torch.randn(2, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert uses_winograd(conv, maps)
    assert torch.autograd.gradcheck(conv, maps)
    assert torch.autograd.gradgradcheck(conv, maps)
