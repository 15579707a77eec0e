"""Views: every batched step against a slow one, image by image."""

import colorsys

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance
from torch.nn import functional as F

from ncttt import InputError
from ncttt.methods import shared_colours
from ncttt.methods.ttt_plus import views
from ncttt.methods.ttt_plus.views import Views, two_views


def batch(count: int = 6, channels: int = 3, height: int = 12, width: int = 10) -> torch.Tensor:
    return torch.rand(count, channels, height, width, generator=torch.Generator().manual_seed(0))


def as_pillow(image: torch.Tensor) -> Image.Image:
    return Image.fromarray((image.permute(1, 2, 0) * 255).round().byte().numpy())


def from_pillow(image: Image.Image) -> torch.Tensor:
    return torch.tensor(np.asarray(image.convert("RGB"))).permute(2, 0, 1) / 255


def test_crops_are_those_of_cutting_and_scaling_one_by_one():
    images = batch()
    boxes = torch.tensor([[0, 0, 12, 10], [2, 1, 5, 7], [11, 9, 1, 1], [3, 0, 9, 4], [0, 5, 2, 5], [6, 2, 6, 8]])
    flips = torch.tensor([False, True, False, True, False, True])
    crops = views.resized_crops(images, boxes, flips)
    for image, (top, left, height, width), flip, crop in zip(images, boxes.tolist(), flips, crops, strict=True):
        cut = image[None, :, top : top + height, left : left + width]
        expected = F.interpolate(cut, (12, 10), mode="bilinear", align_corners=False)[0]
        assert torch.allclose(crop, expected.flip(2) if flip else expected, atol=1e-5)


def test_boxes_have_the_areas_and_shapes_that_were_asked_for():
    images = torch.zeros(20_000, 1, 100, 100)
    top, left, height, width = views.random_boxes(images, (0.2, 1.0), (3 / 4, 4 / 3)).unbind(1)
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + height <= 100).all()
    assert (left + width <= 100).all()
    ratio = (width / height)[height < 100]
    assert 0.7 < ratio.min() < 0.78
    assert 1.3 < ratio.max() < 1.4
    area = height * width / 1e4
    assert area.min() < 0.22
    assert area.max() > 0.95
    small = area[area < 0.5]  # where every shape fits, nothing is drawn again, so the area is uniform
    assert abs(small.mean() - 0.35) < 0.01


def test_an_image_that_no_box_fits_is_taken_whole():
    boxes = views.random_boxes(torch.zeros(3, 1, 40, 4), (0.9, 1.0), (3.0, 4.0))
    assert boxes.tolist() == [[0, 0, 40, 4]] * 3


@pytest.mark.parametrize(
    ("change", "enhancer"),
    [
        (shared_colours.brighten, ImageEnhance.Brightness),
        (shared_colours.contrast, ImageEnhance.Contrast),
        (shared_colours.saturate, ImageEnhance.Color),
    ],
)
def test_colour_changes_are_pillows(change, enhancer):
    images = (batch() * 255).round() / 255
    factors = torch.tensor([0.6, 0.8, 1.0, 1.2, 1.4, 0.0])
    for image, factor, changed in zip(images, factors, change(images, factors), strict=True):
        expected = from_pillow(enhancer(as_pillow(image)).enhance(factor.item()))
        assert (changed - expected).abs().max() < 2.1 / 255


def test_hue_is_turned_as_by_colorsys():
    images = batch(4)
    images[0, :, 0, 0] = 0.5
    images[1, :, 0, 0] = torch.tensor([1.0, 0.0, 0.0])
    images[1, :, 0, 1] = torch.tensor([0.3, 0.3, 0.1])
    turns = torch.tensor([0.1, -0.1, 0.5, 0.0])
    turned = shared_colours.turn_hue(images, turns)
    for image, turn, result in zip(images, turns.tolist(), turned, strict=True):
        for row in range(12):
            for column in range(10):
                hue, saturation, value = colorsys.rgb_to_hsv(*image[:, row, column].tolist())
                expected = colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)
                assert result[:, row, column].tolist() == pytest.approx(expected, abs=1e-5)


def test_grey_is_pillows():
    images = (batch() * 255).round() / 255
    for image, greyed in zip(images, shared_colours.grey(images), strict=True):
        expected = from_pillow(as_pillow(image).convert("L"))
        assert (greyed - expected).abs().max() < 1.1 / 255


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_views_stay_in_range_and_layout(channels, layout):
    images = batch(channels=channels).to(memory_format=layout)
    views = two_views(images)
    assert views.shape == (12, channels, 12, 10)
    assert views.is_contiguous(memory_format=layout)
    assert views.min() >= 0
    assert views.max() <= 1


def test_every_image_and_every_view_is_drawn_for_itself():
    torch.manual_seed(0)  # two views can be alike by chance
    same = batch(1).expand(8, -1, -1, -1)
    views = two_views(same)
    distance = torch.cdist(views.flatten(1), views.flatten(1)) + torch.eye(16)
    assert distance.min() > 1e-3


def test_views_are_seeded_by_the_generator_or_the_global_one():
    one, other = (two_views(batch(), torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one, other)
    torch.manual_seed(5)
    first = two_views(batch())
    torch.manual_seed(5)
    assert torch.equal(two_views(batch()), first)
    assert not torch.equal(two_views(batch()), first)


def test_how_often_things_happen():
    images = batch(1).expand(4000, -1, -1, -1)
    still = {"area": (1.0, 1.0), "ratio": (10 / 12, 10 / 12)}
    off = still | {"jittered": 0.0, "greyed": 0.0, "flipped": 0.0}

    def changed(**settings: float) -> float:
        views = Views(**(off | settings))(images)
        return ((views - images).abs().amax((1, 2, 3)) > 1e-3).float().mean().item()

    assert changed() == 0
    assert changed(greyed=0.2) == pytest.approx(0.2, abs=0.03)
    assert changed(flipped=0.5) == pytest.approx(0.5, abs=0.03)
    assert changed(jittered=0.8) == pytest.approx(0.8, abs=0.03)


def test_what_is_no_batch_of_images():
    with pytest.raises(InputError, match="float images"):
        Views()(torch.zeros(3, 8, 8))
