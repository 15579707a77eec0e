"""What is random has the right distribution, and severity means what it says."""

from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage, stats

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CORRUPTIONS, EXTRA, corrupt, table_for
from ncttt.data.corruptions.noise import level_probabilities
from ncttt.data.corruptions.randomness import Draws
from ncttt.data.corruptions.registry import BY_NAME
from ncttt.data.corruptions.textures import ice_textures
from ncttt.data.corruptions.weather import plasma

ALL = CORRUPTIONS + EXTRA
# Their constants rise in one respect and fall in another (frost: what is added and what is taken away partly cancel).
NOT_MONOTONE = {"glass_blur", "elastic_transform", "saturate", "spatter", "snow", "frost"}
GREY = np.full((64, 32, 32, 3), 120, np.uint8)


@pytest.fixture(scope="module")
def photographs():
    """Images with the spectrum of photographs, which falls as 1/f."""
    noise = np.random.default_rng(1).standard_normal((40, 32, 32, 3))
    frequency = np.hypot(np.fft.fftfreq(32)[:, None], np.fft.fftfreq(32))
    frequency[0, 0] = 1
    images = np.fft.ifft2(np.fft.fft2(noise, axes=(1, 2)) / frequency[None, :, :, None], axes=(1, 2)).real
    return np.clip(120 + 50 * images / images.std(), 0, 255).astype(np.uint8)


def test_gaussian_noise_is_normal_with_the_sigma_of_the_table():
    noise = (corrupt(GREY, "gaussian_noise", 5) / 255.0 - 119.5 / 255).ravel()  # truncation lowers by half a level
    assert abs(noise.mean()) < 4 * 0.1 / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(0.1, rel=0.01)
    assert stats.kurtosis(noise) == pytest.approx(0, abs=0.05)


def test_gaussian_noise_is_white_over_pixels_channels_and_images():
    noise = corrupt(GREY, "gaussian_noise", 3).astype(float)
    noise -= noise.mean()
    for axis in range(4):
        beside = np.roll(noise, 1, axis=axis)
        assert abs((noise * beside).mean() / noise.var()) < 4 / np.sqrt(noise.size)


def test_speckle_noise_grows_with_brightness():
    spread = [corrupt(np.full_like(GREY, level), "speckle_noise", 2).std() for level in (60, 120)]
    assert spread[0] == pytest.approx(60 * 0.1, rel=0.02)
    assert spread[1] == pytest.approx(120 * 0.1, rel=0.02)


def test_shot_noise_is_poisson():
    photons, level = 50, 120
    found = corrupt(GREY, "shot_noise", 5).ravel()
    counts = np.arange(photons + 1)
    chance = stats.poisson.pmf(counts, level / 255 * photons)
    chance[-1] = stats.poisson.sf(photons - 1, level / 255 * photons)
    wanted = np.zeros(256)
    np.add.at(wanted, (counts / photons * 255).astype(int), chance * found.size)
    seen = np.bincount(found, minlength=256)
    assert seen[wanted == 0].sum() == 0
    likely = wanted > 20
    assert stats.chisquare(seen[likely], wanted[likely] / wanted[likely].sum() * seen[likely].sum()).pvalue > 1e-4


@pytest.mark.parametrize("photons", [3, 75, 500])
def test_shot_noise_table_has_poisson_moments(photons):
    """Far from white, where nothing is clipped, mean and variance of the count are the level's share of photons."""
    chances = level_probabilities(photons)
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-12)
    level = 40
    counts = np.arange(photons + 1)
    mean = level / 255 * photons
    direct = stats.poisson.pmf(counts[:-1], mean) @ (counts[:-1] / photons * 255).astype(int)
    direct += stats.poisson.sf(photons - 1, mean) * 255
    assert chances[level] @ np.arange(256) == pytest.approx(direct, rel=1e-9)


def test_impulse_noise_hits_the_share_of_the_table_half_white_half_black():
    noisy = corrupt(GREY, "impulse_noise", 5)
    values = noisy.size
    for extreme in (0, 255):
        hits = (noisy == extreme).sum()
        assert abs(hits - 0.035 * values) < 4 * np.sqrt(0.035 * values)
    assert set(np.unique(noisy)) == {0, 120, 255}
    # Channels are hit apart from each other, unlike whole pixels.
    hit = (noisy != 120).any(axis=-1).mean()
    assert hit == pytest.approx(1 - (1 - 0.07) ** 3, rel=0.05)


def test_fog_has_a_falling_spectrum_that_rises_with_roughness():
    """The faster the wobble decays, the less there is of fine detail."""

    def fine_share(decay):
        maps = plasma(np.random.default_rng(0).uniform(-1, 1, (200, 32 * 32 - 1)), 32, decay)
        power = (np.abs(np.fft.fft2(maps - maps.mean(axis=(1, 2), keepdims=True))) ** 2).mean(axis=0)
        frequency = np.hypot(np.fft.fftfreq(32)[:, None], np.fft.fftfreq(32))
        return power[frequency > 0.25].sum() / power.sum()

    shares = [fine_share(decay) for decay in (3, 2, 1.4)]
    assert shares[0] < shares[1] < shares[2] < 0.5


def test_motion_blur_smears_along_its_own_direction():
    """A dot becomes a tail towards the left, within 45 degrees of the horizontal, of the same total brightness."""
    images = np.zeros((50, 64, 64, 3), np.uint8)
    images[:, 32, 32] = 255
    smeared = corrupt(images, "motion_blur", 5, constants="cifar")
    rows, columns = np.nonzero(smeared.any(axis=(0, 3)))
    assert columns.max() == 32
    assert np.all(np.abs(rows - 32) <= 32 - columns + 1)
    assert len(np.unique(rows)) > 8  # the angle differs from image to image
    np.testing.assert_allclose(smeared[..., 0].sum(axis=(1, 2)), 255, atol=8)


def test_elastic_transform_moves_but_keeps_the_mean(photographs):
    warped = corrupt(photographs, "elastic_transform", 5)
    assert abs(warped.mean() - photographs.mean()) < 3
    assert np.abs(warped.astype(int) - photographs).mean() > 3


@pytest.mark.parametrize("table", ["cifar", "imagenet"])
@pytest.mark.parametrize("name", sorted(set(ALL) - NOT_MONOTONE))
def test_error_grows_with_severity(name, table, photographs):
    clean = photographs.astype(float)
    errors = [((corrupt(photographs, name, s, constants=table) - clean) ** 2).mean() for s in range(1, 6)]
    assert np.all(np.diff(errors) > 0), errors


def test_mud_and_water():
    water = corrupt(GREY, "spatter", 3).astype(int)
    mud = corrupt(GREY, "spatter", 5).astype(int)
    assert (water >= 120).all()
    assert (mud <= 120).all()
    added = (water - 120).sum(axis=(0, 1, 2))
    assert added[0] < added[1]  # turquoise: less red than green and blue
    assert added[1] == pytest.approx(added[2], rel=0.01)


def test_ice_is_bluish_white_and_differs_from_picture_to_picture():
    pictures = ice_textures(256, 0.35, 0)
    for picture in pictures:
        red, green, blue = picture.reshape(-1, 3).mean(axis=0)
        assert 100 < red < green < blue < 200
        assert picture.std() > 30
        detail = picture[..., 0] - ndimage.gaussian_filter(picture[..., 0].astype(float), 2)
        assert detail.std() > 10  # needles, not clouds
    assert all(not np.array_equal(pictures[0], other) for other in pictures[1:])


def test_streams_of_different_images_draws_and_settings_are_unrelated():
    base = Draws(0, "fog", 1, [0, 1])
    first, second = base.normal((4000,)), base.normal((4000,))
    others = [Draws(1, "fog", 1, [0]), Draws(0, "snow", 1, [0]), Draws(0, "fog", 2, [0])]
    rows = np.vstack([first, second, *(other.normal((4000,)) for other in others)])
    correlation = np.corrcoef(rows) - np.eye(len(rows))
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_tables_name_all_corruptions_at_five_severities():
    for name in ALL:
        assert set(BY_NAME[name].tables) == {"cifar", "imagenet"}
        assert all(len(levels) == 5 for levels in BY_NAME[name].tables.values())


# The published values at severities 1 and 5, typed a second time.
@pytest.mark.parametrize(
    ("name", "cifar", "imagenet"),
    [
        ("gaussian_noise", ((0.04,), (0.10,)), ((0.08,), (0.38,))),
        ("shot_noise", ((500,), (50,)), ((60,), (3,))),
        ("impulse_noise", ((0.01,), (0.07,)), ((0.03,), (0.27,))),
        ("defocus_blur", ((0.3, 0.4), (1.5, 0.1)), ((3, 0.1), (10, 0.5))),
        ("glass_blur", ((0.05, 1, 1), (0.4, 1, 2)), ((0.7, 1, 2), (1.5, 4, 2))),
        ("motion_blur", ((6, 1), (9, 2.5)), ((10, 3), (20, 15))),
        ("zoom_blur", ((1.06, 0.01), (1.26, 0.01)), ((1.11, 0.01), (1.31, 0.03))),
        ("snow", ((0.1, 0.2, 1, 0.6, 8, 3, 0.95), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8)),
         ((0.1, 0.3, 3, 0.5, 10, 4, 0.8), (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55))),
        ("frost", ((1, 0.2), (0.75, 0.45)), ((1, 0.4), (0.6, 0.75))),
        ("fog", ((0.2, 3), (1.5, 1.75)), ((1.5, 2), (3, 1.4))),
        ("brightness", ((0.05,), (0.3,)), ((0.1,), (0.5,))),
        ("contrast", ((0.75,), (0.15,)), ((0.4,), (0.05,))),
        ("elastic_transform", ((0, 0, 2.56), (3.2, 0.96, 0.96)), ((488, 170.8, 24.4), (29.28, 2.44, 4.88))),
        ("pixelate", ((0.95,), (0.65,)), ((0.6,), (0.25,))),
        ("jpeg_compression", ((80,), (40,)), ((25,), (7,))),
        ("speckle_noise", ((0.06,), (0.2,)), ((0.15,), (0.6,))),
        ("gaussian_blur", ((0.4,), (1,)), ((1,), (6,))),
        ("spatter", ((0.62, 0.1, 0.7, 0.7, 0.5, 0), (0.65, 0.1, 0.5, 0.68, 0.6, 1)),
         ((0.65, 0.3, 4, 0.69, 0.6, 0), (0.67, 0.4, 1, 0.65, 1.5, 1))),
        ("saturate", ((0.3, 0), (2.5, 0.2)), ((0.3, 0), (20, 0.2))),
    ],
)  # fmt: skip
def test_constants_at_both_ends_of_the_table(name, cifar, imagenet):
    for table, (first, last) in (("cifar", cifar), ("imagenet", imagenet)):
        assert BY_NAME[name].tables[table][0] == pytest.approx(first)
        assert BY_NAME[name].tables[table][4] == pytest.approx(last)


def test_documented_constants_are_those_of_the_code():
    page = Path(__file__).parents[3] / "docs" / "corruptions.md"
    rows = [line.split("|")[1:5] for line in page.read_text().splitlines() if line.startswith("| ")]
    documented = {name.strip(): cells for name, _, *cells in rows if name.strip() in ALL}
    assert set(documented) == set(ALL)
    for name, cells in documented.items():
        for table, cell in zip(("cifar", "imagenet"), cells, strict=True):
            np.testing.assert_allclose(BY_NAME[name].tables[table], read_constants(cell), err_msg=name)


def read_constants(cell):
    """ "2 x: 1,.5 · 3,4" as [[2, 1], [6, 8]]; cells of single numbers have only spaces between severities."""
    factor, _, levels = cell.rpartition("x:")
    parts = levels.split("·") if "·" in levels else levels.split()
    return [[float(factor or 1) * float(number) for number in part.split(",")] for part in parts]


def test_table_is_chosen_by_the_shorter_side_or_by_name():
    assert table_for(95, 224) == "cifar"
    assert table_for(96, 96) == "imagenet"
    assert table_for(224, 224, "cifar") == "cifar"
    with pytest.raises(InputError, match="did you mean 'imagenet'"):
        table_for(32, 32, "imagnet")
