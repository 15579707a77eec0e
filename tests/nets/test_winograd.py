"""Winograd's gradients against PyTorch's own."""

import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

from ncttt import models
from ncttt.nets import winograd
from ncttt.nets.winograd import FEWEST_CHANNELS, Conv3x3

LAYOUTS = [torch.channels_last, torch.contiguous_format]


def uses_winograd(conv, images):
    return type(conv(images).grad_fn).__name__ == "_ConvolutionBackward"


def gradients(conv, images, slopes, fast):
    images = images.clone().requires_grad_()
    conv.zero_grad()
    assert uses_winograd(conv, images) == fast
    conv(images).backward(slopes)
    return images.grad, conv.weight.grad.clone()


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (8, 12), (16, 4)])
@pytest.mark.parametrize("chunk", [1, 2**16, 2**30])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_are_pytorchs(monkeypatch, rows, columns, chunk, layout):
    monkeypatch.setattr(winograd, "CHUNK", chunk)
    torch.manual_seed(0)
    conv = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS + 5).double().to(memory_format=layout)
    images = torch.randn(21, FEWEST_CHANNELS, rows, columns, dtype=torch.float64).to(memory_format=layout)
    slopes = torch.randn(21, FEWEST_CHANNELS + 5, rows, columns, dtype=torch.float64)
    fast = gradients(conv, images, slopes, fast=True)
    monkeypatch.setattr(winograd, "FEWEST_CHANNELS", 10**6)
    usual = gradients(conv, images, slopes, fast=False)
    for ours, theirs in zip(fast, usual, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_single_precision_is_enough():
    torch.manual_seed(0)
    conv = Conv3x3(192, 192)
    images, slopes = torch.randn(2, 16, 192, 8, 8)
    ours = gradients(conv, images, slopes, fast=True)
    exact = gradients(conv.double(), images.double(), slopes.double(), fast=True)
    for single, double in zip(ours, exact, strict=True):
        assert (single - double).abs().max() < 1e-4 * double.abs().max()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_forward_pass_is_pytorchs_to_the_bit(layout):
    conv = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS).to(memory_format=layout)
    images = torch.randn(8, FEWEST_CHANNELS, 8, 8).to(memory_format=layout)
    assert uses_winograd(conv, images)
    assert torch.equal(conv(images), F.conv2d(images, conv.weight, padding=1))


def test_it_is_used_only_where_it_pays():
    wide = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS)
    maps = torch.rand(8, FEWEST_CHANNELS, 8, 8)
    assert uses_winograd(wide, maps)
    assert not uses_winograd(wide, maps[:, :, :6]), "a map that tiles do not fill"
    assert not uses_winograd(wide, torch.rand(8, FEWEST_CHANNELS, 32, 32)), "a large map"
    assert not uses_winograd(Conv3x3(8, FEWEST_CHANNELS), torch.rand(8, 8, 8, 8)), "few channels"
    assert not uses_winograd(wide, maps[:1, :, :4, :4]), "a single tile"
    assert not uses_winograd(wide, maps[0]), "an image without a batch"
    with torch.no_grad():
        assert wide(maps).grad_fn is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not uses_winograd(wide, maps)
    assert not uses_winograd(Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS).bfloat16(), maps.bfloat16()), "too coarse"


def test_a_layer_that_was_edited_is_pytorchs():
    maps = torch.rand(8, FEWEST_CHANNELS, 8, 8)
    biased, dilated = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS), Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS)
    biased.bias = torch.nn.Parameter(torch.ones(FEWEST_CHANNELS))
    dilated.dilation = dilated.padding = (2, 2)
    assert torch.equal(biased(maps), F.conv2d(maps, biased.weight, biased.bias, padding=1))
    assert torch.equal(dilated(maps), F.conv2d(maps, dilated.weight, padding=2, dilation=2))


@pytest.mark.parametrize("frozen", ["kernel", "maps"])
def test_what_is_frozen_gets_no_gradient_but_the_other_does(frozen):
    conv = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS).requires_grad_(frozen == "maps")
    maps = torch.rand(32, FEWEST_CHANNELS, 4, 4, requires_grad=frozen == "kernel")
    assert uses_winograd(conv, maps)
    conv(maps).square().sum().backward()
    learns, rests = (maps, conv.weight) if frozen == "kernel" else (conv.weight, maps)
    assert rests.grad is None
    (expected,) = torch.autograd.grad(F.conv2d(maps, conv.weight, padding=1).square().sum(), learns)
    torch.testing.assert_close(learns.grad, expected, rtol=0, atol=1e-4 * expected.abs().max().item())


def test_second_derivatives_are_right_too(monkeypatch):
    monkeypatch.setattr(winograd, "FEWEST_CHANNELS", 2)
    conv = Conv3x3(2, 3).double()
    maps = torch.randn(2, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert uses_winograd(conv, maps)

    def convolved(maps, weight):
        return functional_call(conv, {"weight": weight}, (maps,))

    assert torch.autograd.gradcheck(convolved, (maps, conv.weight))
    assert torch.autograd.gradgradcheck(convolved, (maps, conv.weight))


def test_transforms_of_torch_func_work():
    conv = Conv3x3(FEWEST_CHANNELS, FEWEST_CHANNELS)
    maps = torch.rand(3, 16, FEWEST_CHANNELS, 8, 8)
    assert torch.func.vmap(conv)(maps).shape == maps.shape
    assert torch.func.jvp(conv, (maps[0],), (maps[1],))[1].shape == maps[1].shape


def test_the_small_network_has_it():
    assert uses_winograd(models.small().layer4[1].block1[0], torch.rand(64, 192, 4, 4))
