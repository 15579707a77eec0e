"""The promises of `corrupt`: reproducible for each image by itself, careful with its input, the same on any size."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image
from threadpoolctl import threadpool_info

from ncttt.base.errors import InputError
from ncttt.data.corruptions import CORRUPTIONS, EXTRA, apply, blur, corrupt
from ncttt.data.corruptions.contact_sheet import contact_sheet
from ncttt.data.corruptions.textures import covering

ALL = CORRUPTIONS + EXTRA
RANDOM = sorted(
    set(ALL)
    - {
        "defocus_blur",
        "zoom_blur",
        "brightness",
        "contrast",
        "pixelate",
        "jpeg_compression",
        "gaussian_blur",
        "saturate",
    }
)


def pictures(n, height=32, width=32):
    small = np.random.default_rng(n).integers(0, 256, (n, 8, 8, 3), np.uint8)
    resized = [Image.fromarray(image).resize((width, height), Image.Resampling.BICUBIC) for image in small]
    return np.stack([np.asarray(image) for image in resized])


@pytest.mark.parametrize(("constants", "severity"), [("cifar", 4), ("imagenet", 3)])
@pytest.mark.parametrize("name", ALL)
def test_an_image_depends_on_its_index_not_on_its_batch(name, constants, severity, monkeypatch):
    images, options = pictures(11), {"seed": 3, "constants": constants}
    together = corrupt(images, name, severity, **options)
    order = np.random.default_rng(0).permutation(11)
    shuffled = corrupt(images[order], name, severity, indices=order, **options)
    np.testing.assert_array_equal(shuffled, together[order])
    for n in (0, 7):
        alone = corrupt(images[n : n + 1], name, severity, indices=[n], **options)
        np.testing.assert_array_equal(alone[0], together[n])
    monkeypatch.setattr(apply, "_BLOCK_VALUES", 3 * 32 * 32 * 3)
    np.testing.assert_array_equal(corrupt(images, name, severity, **options), together)


@pytest.mark.parametrize("name", ALL)
def test_an_image_does_not_depend_on_its_neighbours(name):
    images = pictures(4, 34, 40)
    together = corrupt(images, name, 3)
    images[[0, 1, 3]] = 255 - images[[0, 1, 3]]
    np.testing.assert_array_equal(corrupt(images, name, 3)[2], together[2])


@pytest.mark.parametrize("name", RANDOM)
def test_seed_index_and_severity_change_what_is_random(name):
    images = np.repeat(pictures(1), 2, axis=0)
    first, second = corrupt(images, name, 3, seed=0)
    assert (first != second).any()
    assert (corrupt(images, name, 3, seed=1)[0] != first).any()


@pytest.mark.parametrize("name", sorted(set(ALL) - set(RANDOM)))
def test_the_others_use_no_randomness(name):
    images = np.repeat(pictures(1), 2, axis=0)
    first, second = corrupt(images, name, 3, seed=0)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(corrupt(images, name, 3, seed=1)[0], first)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [(32, 32), (33, 57), (128, 96), (224, 224)])
def test_any_size_gives_a_new_array_of_the_same_shape(name, size):
    images = pictures(1, *size)
    before = images.copy()
    for severity in (2, 5):
        result = corrupt(images, name, severity)
        assert result.shape == images.shape
        assert result.dtype == np.uint8
        assert result.flags.writeable
        assert not np.shares_memory(result, images)
        assert (result != images).any()
    np.testing.assert_array_equal(images, before)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("level", [0, 255])
def test_black_and_white_images_do_no_harm(name, level):
    images = np.full((2, 32, 32, 3), level, np.uint8)
    with np.errstate(all="raise", under="ignore"):
        assert corrupt(images, name, 5).shape == images.shape


@pytest.mark.parametrize(
    "name", ["defocus_blur", "zoom_blur", "pixelate", "elastic_transform", "contrast", "motion_blur"]
)
def test_a_flat_image_stays_as_it_is(name):
    for level in (1, 77, 130, 254):
        flat = np.full((1, 40, 32, 3), level, np.uint8)
        assert np.abs(corrupt(flat, name, 5).astype(int) - level).max() <= (1 if name == "contrast" else 0)


@pytest.mark.parametrize("name", ALL)
def test_an_empty_batch_stays_empty(name):
    assert corrupt(np.zeros((0, 32, 32, 3), np.uint8), name, 1).shape == (0, 32, 32, 3)


def test_memory_maps_and_views_are_read_like_arrays(tmp_path):
    images = pictures(3)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    flipped = np.ascontiguousarray(images[:, :, ::-1])
    for name in ALL:
        np.testing.assert_array_equal(corrupt(mapped, name, 2), corrupt(images, name, 2))
        np.testing.assert_array_equal(corrupt(images[:, :, ::-1], name, 2), corrupt(flipped, name, 2))


def test_frost_takes_photographs_from_a_folder(tmp_path):
    Image.new("RGB", (400, 300), (10, 200, 30)).save(tmp_path / "green.png")
    (tmp_path / "notes.txt").write_text("not a picture")
    images = np.zeros((3, 32, 32, 3), np.uint8)
    frosted = corrupt(images, "frost", 5, frost=tmp_path)
    np.testing.assert_array_equal(
        frosted, np.broadcast_to((np.array([10, 200, 30]) * 0.45).astype(np.uint8), images.shape)
    )


@pytest.mark.parametrize(("high", "wide"), [(200, 300), (203, 168), (199, 166)])
def test_frost_photographs_are_shrunk_as_opencv_does_it(high, wide):
    """At a fifth of the size, bilinear reading at 5 (i + 1/2) - 1/2 without averaging is pixel 5 i + 2."""
    picture = np.random.default_rng(0).integers(0, 256, (high, wide, 3), np.uint8)
    rows, columns = ((5 * np.arange(round(size / 5)) + 2) for size in (high, wide))
    np.testing.assert_array_equal(covering(picture, 32, 32, 5), picture[rows][:, columns])


def test_frost_photographs_are_shrunk_no_further_than_images_need():
    picture = np.random.default_rng(0).integers(0, 256, (500, 100, 3), np.uint8)
    np.testing.assert_array_equal(covering(picture, 32, 32, 5), picture[1::3, 1::3])
    np.testing.assert_array_equal(covering(picture, 99, 99, 5), picture)
    assert covering(picture, 32, 120, 5).shape == (605, 121, 3)


def test_16_bit_frost_photographs_keep_their_brightness(tmp_path):
    Image.fromarray(np.full((300, 300), 100 * 257, np.uint16)).save(tmp_path / "deep.png")
    assert (corrupt(np.zeros((1, 32, 32, 3), np.uint8), "frost", 5, frost=tmp_path) == 45).all()


def test_hidden_files_are_no_frost_photographs(tmp_path):
    Image.new("RGB", (300, 300), (100, 100, 100)).save(tmp_path / "ice.jpg")
    (tmp_path / "._ice.jpg").write_bytes(b"what macOS leaves beside a file")
    (tmp_path / "folder.png").mkdir()
    assert corrupt(np.zeros((1, 32, 32, 3), np.uint8), "frost", 5, frost=tmp_path).min() == 45


def test_frost_photographs_beyond_the_limit_of_pillow_are_named(tmp_path, monkeypatch):
    Image.new("RGB", (300, 300)).save(tmp_path / "huge.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(InputError, match=r"cannot read the frost photograph .*huge\.png.*exceeds limit"):
        corrupt(np.zeros((1, 32, 32, 3), np.uint8), "frost", 1, frost=tmp_path)


def test_numpy_integers_name_the_same_stream():
    images = pictures(2)
    plain = corrupt(images, "gaussian_noise", 3, seed=7, indices=[2, 5])
    given = corrupt(images, "gaussian_noise", np.int64(3), seed=np.uint8(7), indices=np.array([2, 5], np.uint16))
    np.testing.assert_array_equal(given, plain)


def test_threads_at_once_leave_the_threads_of_blas_alone(monkeypatch):
    images, gain = pictures(4), blur._gain
    corrupt(images, "defocus_blur", 5)  # whatever is cached is cached now
    pauses = iter([0.05, 0.1, 0.15, 0.2])  # so they overlap, and the first to enter is the first to leave
    monkeypatch.setattr(blur, "_gain", lambda *arguments: time.sleep(next(pauses)) or gain(*arguments))
    before = threadpool_info()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: corrupt(images, "defocus_blur", 5), range(4)))
    assert threadpool_info() == before


def test_small_frost_photographs_are_enlarged(tmp_path):
    Image.new("RGB", (20, 500), (100, 100, 100)).save(tmp_path / "narrow.png")
    assert corrupt(np.zeros((1, 60, 48, 3), np.uint8), "frost", 5, frost=tmp_path).min() == 45


def test_frost_follows_a_changed_folder(tmp_path):
    images = np.zeros((1, 32, 32, 3), np.uint8)
    Image.new("RGB", (300, 300), (100, 100, 100)).save(tmp_path / "a.png")
    before = corrupt(images, "frost", 1, frost=tmp_path)
    (tmp_path / "a.png").unlink()
    Image.new("RGB", (300, 300), (200, 200, 200)).save(tmp_path / "b.png")
    assert (corrupt(images, "frost", 1, frost=tmp_path) > before).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corruption": "fogg"}, "no corruption 'fogg'; did you mean 'fog'"),
        ({"severity": 6}, "severity 6 of fog; expected 1, 2, 3, 4 or 5"),
        ({"corruption": ["fog"]}, r"no corruption \['fog'\]"),
        ({"severity": 0}, "severity 0"),
        ({"severity": True}, "severity True of fog; expected 1, 2, 3, 4 or 5"),
        ({"severity": 5.0}, "severity 5.0"),
        ({"severity": [5]}, r"severity \[5\]"),
        ({"images": np.zeros((1, 32, 32, 3))}, "are float64; expected a numpy array of uint8"),
        ({"images": [[1]]}, "are list"),
        ({"images": np.zeros((1, 3, 32, 32), np.uint8)}, r"shape \(1, 3, 32, 32\); expected \(N, H, W, 3\)"),
        ({"images": np.zeros((32, 32, 3), np.uint8)}, r"shape \(32, 32, 3\)"),
        ({"images": np.zeros((1, 31, 32, 3), np.uint8)}, "31 x 32 pixels; expected sides from 32 to 224"),
        ({"images": np.zeros((1, 32, 225, 3), np.uint8)}, "32 x 225"),
        ({"indices": [1, 2]}, "2 indices for 1 images"),
        ({"indices": [-1]}, "index -1"),
        ({"indices": [0.5]}, r"indices are float64 of shape \(1,\); expected one integer"),
        ({"indices": [True]}, "indices are bool"),
        ({"indices": [[0]]}, r"of shape \(1, 1\)"),
        ({"indices": [[0], [1, 2]]}, "indices .*; expected one integer for each image"),
        ({"indices": [2**65]}, "indices are object .*at most 64 bits"),
        ({"indices": 0}, r"of shape \(\)"),
        ({"seed": -1}, "seed -1; expected an integer from 0"),
        ({"seed": 0.5}, "seed 0.5"),
        ({"seed": True}, "seed True"),
        ({"constants": "cifar10"}, "no constants 'cifar10'; did you mean 'cifar'"),
        ({"constants": ["cifar"]}, r"no constants \['cifar'\]"),
        ({"corruption": "frost", "frost": "nowhere"}, "no folder of frost photographs at 'nowhere'"),
    ],
)
def test_bad_input_is_named(change, message):
    call = {"images": np.zeros((1, 32, 32, 3), np.uint8), "corruption": "fog", "severity": 1} | change
    with pytest.raises(InputError, match=message):
        corrupt(**call)


def test_frost_folders_without_readable_pictures_are_named(tmp_path):
    images = np.zeros((1, 32, 32, 3), np.uint8)
    with pytest.raises(InputError, match=r"no picture in the frost folder .*expected files ending in"):
        corrupt(images, "frost", 1, frost=tmp_path)
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(InputError, match=r"cannot read the frost photograph .*broken\.png"):
        corrupt(images, "frost", 1, frost=tmp_path)


def test_contact_sheet_shows_every_severity_of_every_row(tmp_path):
    images = pictures(2)
    sheet = contact_sheet(images, tmp_path / "sheet.png", corruptions=["fog", "contrast"], cell=32)
    assert Image.open(tmp_path / "sheet.png").size == sheet.size
    shown = np.asarray(sheet)
    for row, name in enumerate(["fog", "contrast"]):
        for severity in range(1, 6):
            top, left = 22 + row * 36, 150 + severity * 36
            expected = corrupt(images[row : row + 1], name, severity, indices=[row])[0]
            np.testing.assert_array_equal(shown[top : top + 32, left : left + 32], expected)
