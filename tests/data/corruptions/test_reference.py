"""Every corruption against its slow version, given the same random numbers."""

import colorsys

import corruption_references as slow
import numpy as np
import pytest
from scipy import ndimage

from ncttt.data.corruptions import CORRUPTIONS, EXTRA, corrupt
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import BY_NAME
from ncttt.data.corruptions.textures import textures_for

ALL = CORRUPTIONS + EXTRA
# Shot noise is sampled by a method of its own, so it is compared as a distribution, in test_corruption_statistics.py.
COMPARABLE = [name for name in ALL if name != "shot_noise"]
# Where float32, or sums equal but for the last bit, meet truncation: one level at most, in this share of values.
NEARLY = {
    "gaussian_noise": 0.001,
    "speckle_noise": 0.001,
    "snow": 0.001,
    "fog": 0.001,
}


def pictures(n, height, width, seed=0):
    """Smooth colourful images with some flat black, white and grey in them."""
    rng = np.random.default_rng(seed)
    noise = ndimage.gaussian_filter(rng.standard_normal((n, height, width, 3)), (0, 1.5, 1.5, 0))
    images = np.clip(128 + 70 * noise / noise.std(), 0, 255).astype(np.uint8)
    images[:, :6, :6], images[:, :6, 6:12], images[:, 6:12, :6] = 0, 255, 77
    return images


def draw_for(name, severity, index, seed=3):
    """The random numbers of one image, in the order in which they are asked for."""
    draws = Draws(seed, name, severity, [index])
    return lambda kind, *arguments: getattr(draws, kind)(*arguments)[0]


def expected(image, name, severity, table, index):
    constants = BY_NAME[name].tables[table][severity - 1]
    if name == "frost":
        constants = (*constants, textures_for(*image.shape[:2], table, 3))
    return getattr(slow, name)(image, draw_for(name, severity, index), *constants)


def compare(name, severity, table, height, width):
    images = pictures(2, height, width)
    got = corrupt(images, name, severity, seed=3, indices=[5, 11], constants=table)
    want = np.stack([expected(image, name, severity, table, i) for image, i in zip(images, [5, 11], strict=True)])
    if name in NEARLY:
        off = np.abs(got.astype(int) - want)
        assert off.max() <= 1
        assert (off > 0).mean() < NEARLY[name]
    else:
        np.testing.assert_array_equal(got, want)
    assert (got != images).any()


@pytest.mark.parametrize("severity", [1, 3, 5])
@pytest.mark.parametrize("name", COMPARABLE)
def test_equals_the_slow_version_at_32_pixels(name, severity):
    compare(name, severity, "cifar", 32, 32)


@pytest.mark.parametrize("severity", [2, 4])
@pytest.mark.parametrize("name", COMPARABLE)
def test_equals_the_slow_version_with_imagenet_constants_on_oblong_images(name, severity):
    compare(name, severity, "imagenet", 40, 53)


def test_the_slow_colours_are_those_of_the_standard_library():
    for pixel in pictures(1, 32, 32).reshape(-1, 3) / 255:
        hsv = colorsys.rgb_to_hsv(*pixel)
        np.testing.assert_allclose(slow.to_hsv(*pixel), hsv, atol=1e-12)
        np.testing.assert_allclose(slow.to_rgb(*hsv), colorsys.hsv_to_rgb(*hsv), atol=1e-12)
