"""The whitened first convolution."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ncttt import InputError, Recipe, models
from ncttt.data import batches, load
from ncttt.training import Job, run_job
from ncttt.training.launch import build_model
from ncttt.training.start import whiten_stem


def correlated_images(count=64):
    torch.manual_seed(0)
    rough = torch.randn(count, 3, 16, 16) + 2 * torch.randn(count, 1, 16, 16)
    return F.interpolate(rough, (32, 32), mode="bilinear") + 0.5 * torch.randn(count, 3, 32, 32) + 1


def whitened(stem, images):
    before = stem.weight.detach().clone()
    whiten_stem(stem, images.split(20))
    return before, stem.weight.detach()


def test_the_results_are_white():
    images = correlated_images()
    stem = models.small().layer1[0]
    _, weight = whitened(stem, images)
    assert torch.equal(weight[:12], -weight[12:24])
    kept = stem(images)[:12, :12, 1:-1, 1:-1].transpose(0, 1).flatten(1)  # without the padded border
    torch.testing.assert_close(torch.cov(kept), torch.eye(12), atol=0.1, rtol=0)


def test_channels_that_are_left_stay_random_and_few_channels_take_the_strongest():
    before, wide = whitened(nn.Conv2d(3, 30, 3), correlated_images())
    _, narrow = whitened(nn.Conv2d(3, 6, 3), correlated_images())
    assert torch.equal(wide[24:], before[24:])
    assert torch.equal(narrow, torch.cat([wide[:3], -wide[:3]]))


def test_directions_without_variance_are_left_out():
    grey = correlated_images()[:, :1].expand(-1, 3, -1, -1)
    before, weight = whitened(nn.Conv2d(3, 24, 3), grey)
    assert torch.equal(weight[8:], before[8:]), "four directions of grey patches, with both signs"
    assert weight[:8].abs().max() < 10


def test_the_filters_stand_in_the_middle_of_a_large_kernel():
    _, weight = whitened(nn.Conv2d(3, 24, 7), correlated_images())
    assert weight[:, :, 2:4, 2:4].count_nonzero() == weight.count_nonzero() == 24 * 12


@pytest.mark.parametrize("net", [nn.Flatten(), nn.Conv2d(3, 8, 1), nn.Conv2d(1, 8, 3), nn.Conv2d(3, 6, 3, groups=3)])
def test_a_network_without_such_a_convolution_is_an_error(net):
    with pytest.raises(InputError, match="begins with a convolution of 2 pixels and more on images of 3 channels"):
        whiten_stem(net, [correlated_images()])


def test_a_training_begins_with_it_and_says_so(tmp_path):
    recipe = Recipe(epochs=1, augment="none")
    job = Job(data="digits", whiten=True, network_settings={"width": 24}, method="source", recipe=recipe, test=None)
    data = load("digits", "fit")
    model = build_model(job, data)
    images = next(iter(batches(data, len(data))))[0]
    maps = model.classifier.layer1[0]((images - model.mean) / model.std)[:, 0, 1:-1, 1:-1]
    assert maps.var().item() == pytest.approx(1, abs=0.05)
    with pytest.raises(InputError, match="whiten is for a network that begins with random weights, not with start="):
        Job(data="digits", whiten=True, start="digits-small-ncttt")
    narrow = replace(job, network_settings={"width": 4})
    run_job(narrow, tmp_path)
    assert "whiten" in (tmp_path / "config.json").read_text()
    with pytest.raises(InputError, match="whiten=True; found False"):
        run_job(replace(narrow, whiten=False), tmp_path, resume=True)
