"""The whitened first convolution."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ncttt import InputError, models
from ncttt.data import batches, load
from ncttt.training.job import Job
from ncttt.training.whitening import whiten_stem


def correlated_images(count=64):
    torch.manual_seed(0)
    rough = torch.randn(count, 3, 16, 16)
    return F.interpolate(rough, (32, 32), mode="bilinear") + rough.mean(1, keepdim=True).repeat_interleave(
        2, 2
    ).repeat_interleave(2, 3)


def test_the_results_are_white():
    images = correlated_images()
    stem = models.small().layer1[0]
    whiten_stem(stem, images)
    kept = stem(images)[:, :, 1:-1, 1:-1].transpose(0, 1).flatten(1)  # without the padded border
    assert torch.equal(kept[:12], -kept[12:24])
    torch.testing.assert_close(kept[:12] @ kept[:12].T / kept.shape[1], torch.eye(12), atol=0.1, rtol=0)


def test_channels_that_are_left_stay_random_and_few_channels_take_the_strongest():
    wide, narrow = nn.Conv2d(3, 30, 3), nn.Conv2d(3, 6, 3)
    before = wide.weight.detach().clone()
    whiten_stem(wide, correlated_images())
    whiten_stem(narrow, correlated_images())
    assert torch.equal(wide.weight[24:], before[24:])
    assert torch.equal(narrow.weight[:3], wide.weight[:3])
    assert torch.equal(narrow.weight[3:], -wide.weight[:3])


@pytest.mark.parametrize("net", [nn.Flatten(), nn.Conv2d(3, 8, 1), nn.Conv2d(1, 8, 3), nn.Conv2d(3, 6, 3, groups=3)])
def test_a_network_without_such_a_convolution_is_an_error(net):
    with pytest.raises(InputError, match="begins with a convolution of 2 pixels and more on images of 3 channels"):
        whiten_stem(net, correlated_images())


def test_a_training_begins_with_it():
    job = Job(data="digits", whiten=True, network_settings={"width": 24}, method="source")
    data = load("digits", "fit")
    model = job.model(data)
    images = next(iter(batches(data, len(data))))[0]
    maps = model.classifier.layer1[0]((images - model.mean) / model.std)[:, :, 1:-1, 1:-1]
    squares = maps.square().mean((0, 2, 3))
    assert torch.allclose(squares[0], torch.tensor(1.0), atol=0.05)
    with pytest.raises(InputError, match="whiten is for a network that begins with random weights, not with start="):
        Job(data="digits", whiten=True, start="digits-small-ncttt")
