"""Copies of a batch: what they are made of."""

import torch
import torch.nn.functional as F

from ncttt.adapt.batch import shifted_copies


def test_copies_are_the_images_mirrored_and_shifted():
    images = torch.rand(2, 3, 32, 32)
    whole, mirrored, shifted, both = shifted_copies(images, 4).chunk(4)
    assert whole.equal(images)
    assert mirrored.equal(images.flip(3))
    padded = F.pad(images, [2] * 4, mode="reflect")
    windows = [padded[:, :, top : top + 32, left : left + 32] for top in range(5) for left in range(5)]
    assert sum(shifted.equal(window) for window in windows) == 1
    assert sum(both.equal(window.flip(3)) for window in windows) == 1


def test_copies_need_not_be_mirrored_and_one_is_the_batch_itself():
    images = torch.rand(2, 3, 32, 32)
    padded = F.pad(images, [2] * 4, mode="reflect")
    _, *shifted = shifted_copies(images, 3, mirrored=False).chunk(3)
    for copy in shifted:
        assert any(copy.equal(padded[:, :, t : t + 32, s : s + 32]) for t in range(5) for s in range(5))
    assert shifted_copies(images, 1) is images
