"""Copies of a batch: what they are made of."""

import pytest
import torch
import torch.nn.functional as F

import ncttt
from ncttt import InputError
from ncttt.model.copies import copies_of
from ncttt.testing.cases import images, resnet


def test_copies_are_the_images_mirrored_and_shifted():
    batch = torch.rand(2, 3, 32, 32)
    whole, mirrored, shifted, both = copies_of(batch, 4).chunk(4)
    assert whole.equal(batch)
    assert mirrored.equal(batch.flip(3))
    padded = F.pad(batch, [2] * 4, mode="reflect")
    windows = [padded[:, :, top : top + 32, left : left + 32] for top in range(5) for left in range(5)]
    assert sum(shifted.equal(window) for window in windows) == 1
    assert sum(both.equal(window.flip(3)) for window in windows) == 1


def test_copies_need_not_be_mirrored_and_one_is_the_batch_itself():
    batch = torch.rand(2, 3, 32, 32)
    padded = F.pad(batch, [2] * 4, mode="reflect")
    _, *shifted = copies_of(batch, 3, mirrored=False).chunk(3)
    for copy in shifted:
        assert any(copy.equal(padded[:, :, t : t + 32, s : s + 32]) for t in range(5) for s in range(5))
    assert copies_of(batch, 1) is batch


def test_crops_are_parts_of_the_images_every_other_one_mirrored():
    batch = torch.rand(2, 3, 8, 8)
    parts = [batch[:, :, top : top + 6, left : left + 6] for top in range(3) for left in range(3)]
    torch.manual_seed(0)
    made = [copies_of(batch, 2, crop=0.75).chunk(2) for _ in range(20)]
    assert all(sum(plain.equal(part) for part in parts) == 1 for plain, _ in made)
    assert all(sum(turned.equal(part.flip(3)) for part in parts) == 1 for _, turned in made)
    assert len({plain.sum().item() for plain, _ in made}) > 4  # places differ
    plain = copies_of(batch, 3, mirrored=False, crop=0.75).chunk(3)
    assert all(any(copy.equal(part) for part in parts) for copy in plain)


def test_a_step_learns_from_crops_and_the_whole_images_are_predicted():
    net, batch, settings = resnet(), images(6), {"lr": 1e-2, "norm": "source"}
    adapter = ncttt.Adapter(net, ncttt.Tent(crop=0.75, **settings))
    sizes = []
    adapter.model.classifier.register_forward_pre_hook(lambda _, given: sizes.append(tuple(given[0].shape)))
    logits = adapter(batch)
    side = batch.shape[2]
    assert sizes[-2:] == [(6, 3, side * 3 // 4, side * 3 // 4), (6, 3, side, side)]
    assert not torch.equal(logits, ncttt.Adapter(net, ncttt.Tent(**settings))(batch))


def test_a_network_of_one_image_size_learns_from_whole_copies():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 2, 1), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(128, 8)
    )
    batch, settings = torch.rand(4, 3, 8, 8), {"lr": 1e-2, "copies": 2}
    cropped = ncttt.Adapter(net, ncttt.Tent(crop=0.75, **settings))
    whole = ncttt.Adapter(net, ncttt.Tent(**settings))
    assert torch.equal(cropped(batch), whole(batch))


def test_logits_from_before_a_step_on_crops_are_those_of_the_whole_images():
    batch = images(6)
    adapter = ncttt.Adapter(resnet(), ncttt.Tent(returns="before", crop=0.75, copies=2, mirror_mean=True))
    zero = ncttt.Adapter(resnet(), ncttt.Tent(mirror_mean=True), steps=0)
    assert adapter(batch).shape == zero(batch).shape


@pytest.mark.parametrize("crop", [0, -0.5, 1.5, float("nan")])
def test_a_crop_is_above_zero_and_at_most_one(crop):
    with pytest.raises(InputError, match="crop must be above 0 and at most 1"):
        ncttt.Tent(crop=crop)
