"""Augmentation against a slow version that takes one image at a time."""

import pytest
import torch
import torch.nn.functional as F

from ncttt.base.errors import InputError
from ncttt.data.augment import pad_crop_flip, pad_crop_flip_cutout, random_crop_flip, resize_crop_flip


def slowly(images, height, width, seed):
    """Crop and flip image by image with the same random numbers."""
    generator = torch.Generator().manual_seed(seed)
    count, _, full_height, full_width = images.shape
    tops = torch.randint(full_height - height + 1, (count,), generator=generator).tolist()
    lefts = torch.randint(full_width - width + 1, (count,), generator=generator).tolist()
    flips = torch.randint(2, (count,), generator=generator).tolist()
    made = []
    for image, top, left, flip in zip(images, tops, lefts, flips, strict=True):
        window = image[:, top : top + height, left : left + width]
        made.append(window.flip(-1) if flip else window)
    return torch.stack(made)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def test_pad_crop_flip_equals_the_slow_version():
    images = torch.rand(40, 3, 32, 32)
    expected = slowly(F.pad(images, [4, 4, 4, 4]), 32, 32, seed=7)
    assert torch.equal(pad_crop_flip(images, generator=seeded(7)), expected)


def test_resize_crop_flip_equals_the_slow_version():
    images = torch.rand(10, 3, 50, 70)
    large = F.interpolate(images, (40, 56), mode="bilinear", antialias=True)
    expected = slowly(large, 32, 32, seed=7)
    assert torch.equal(resize_crop_flip(images, 32, 40, generator=seeded(7)), expected)


def test_images_of_the_right_size_are_not_resampled():
    images = torch.rand(4, 3, 40, 40)
    assert set(resize_crop_flip(images, 32, 40).unique().tolist()) <= set(images.unique().tolist())


def test_every_shift_and_both_directions_occur():
    # One bright pixel in the middle shows where the window was.
    images = torch.zeros(2000, 1, 9, 9)
    images[:, :, 4, 3] = 1
    made = pad_crop_flip(images, padding=2, generator=seeded(0))
    rows, columns = made[:, 0].nonzero()[:, 1], made[:, 0].nonzero()[:, 2]
    assert rows.unique().tolist() == [2, 3, 4, 5, 6]
    assert columns.unique().tolist() == [1, 2, 3, 4, 5, 6, 7]
    # Unflipped the pixel lies in columns 1..5, flipped in 3..7, so 1, 2 and 6, 7 tell the two apart.
    assert 0.4 < (columns > 5).sum() / ((columns > 5) | (columns < 3)).sum() < 0.6


def test_seed_decides_and_layout_is_channels_last():
    images = torch.rand(16, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    one, same, other = (pad_crop_flip(images, generator=seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.is_contiguous(memory_format=torch.channels_last)


def test_a_window_larger_than_the_image():
    with pytest.raises(InputError, match="cannot cut 33x32 out of images of 32x32"):
        random_crop_flip(torch.rand(1, 3, 32, 32), 33, 32)


@pytest.mark.parametrize("augment", [pad_crop_flip, resize_crop_flip])
def test_a_single_image_is_refused(augment):
    with pytest.raises(InputError, match=r"have shape \(3, 32, 32\); expected \(B, C, H, W\)"):
        augment(torch.rand(3, 32, 32))


def test_cutout_greys_one_square_of_every_image_and_keeps_the_layout():
    images = torch.full((64, 32, 32, 3), 0.9).permute(0, 3, 1, 2)
    torch.manual_seed(0)
    cut = pad_crop_flip_cutout(images, side=8)
    grey = (cut == 0.5).all(1)
    assert cut.is_contiguous(memory_format=torch.channels_last)
    for mask in grey:
        rows, columns = mask.any(1).nonzero().flatten(), mask.any(0).nonzero().flatten()
        assert 4 <= len(rows) <= 8  # half of the square at least: its middle lies inside
        assert 4 <= len(columns) <= 8
        assert mask.sum() == len(rows) * len(columns)
        assert len(rows) == rows[-1] - rows[0] + 1
    middles = {(int(mask.any(1).nonzero()[0]), int(mask.any(0).nonzero()[0])) for mask in grey}
    assert len(middles) > 40
    assert bool((images == 0.9).all())
