"""How photographs of any size become squares: against scaling the whole image and cutting the result."""

import numpy as np
import pytest
from PIL import Image, ImageOps

from ncttt.base.errors import InputError
from ncttt.cli import main
from ncttt.data import folder, load
from ncttt.data.files.image_files import LazyImages, decode, decode_hashed
from ncttt.data.files.resizing import exact, shorter_side, side_of


def photograph(width: int, height: int, seed: int = 0) -> Image.Image:
    """Smooth noise: neighbouring pixels are alike, as in a photograph, but no two places are."""
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def scaled_then_cut(image: Image.Image, size: int, side: int) -> np.ndarray:
    """The obvious way: the whole image is scaled, with torchvision's rounding, and the centre cut out."""
    scale = side / min(image.size)
    width, height = (side if length == min(image.size) else int(length * scale) for length in image.size)
    whole = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
    top, left = round((height - size) / 2.0), round((width - size) / 2.0)
    return whole[top : top + size, left : left + size]


@pytest.mark.parametrize("sides", [(500, 375), (375, 500), (64, 64), (91, 333), (256, 256), (301, 256), (20, 23)])
@pytest.mark.parametrize(("size", "side"), [(224, 256), (32, 37), (64, 73), (33, 33), (32, 64)])
def test_the_part_that_is_kept_is_that_of_the_whole_image_scaled(tmp_path, sides, size, side):
    picture = photograph(*sides)
    picture.save(tmp_path / "a.png")
    found = decode(tmp_path / "a.png", size, f"crop({side})").astype(int)
    assert found.shape == (size, size, 3)
    assert np.abs(found - scaled_then_cut(picture, size, side)).max() <= 1  # rounding


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["png", "tif"])
def test_turned_photographs_are_cut_as_they_are_shown(tmp_path, orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    photograph(101, 60).save(tmp_path / f"a.{kind}", exif=exif)
    with Image.open(tmp_path / f"a.{kind}") as stored:
        upright = ImageOps.exif_transpose(stored).convert("RGB")
    found = decode(tmp_path / f"a.{kind}", 32, "crop").astype(int)
    assert np.abs(found - scaled_then_cut(upright, 32, 37)).max() <= 1


def test_a_narrow_strip_is_not_blown_up(tmp_path, monkeypatch):
    made, resize = [], Image.Image.resize

    def noting(self, size, *args, **kwargs):
        made.append(size)
        return resize(self, size, *args, **kwargs)

    monkeypatch.setattr(Image.Image, "resize", noting)
    Image.new("RGB", (2, 4000)).save(tmp_path / "strip.png")
    assert decode(tmp_path / "strip.png", 224, "crop").shape == (224, 224, 3)
    assert made == [(224, 224)]


def test_crop_keeps_the_proportions_of_256_to_224():
    assert [shorter_side("crop", size) for size in (224, 64, 32, 1)] == [256, 73, 37, 1]
    assert exact("crop", 224) == exact("crop(256)", 224) == "crop(256)"
    assert exact("square", 224) == "square"


def test_decoding_with_a_hash_gives_the_same_pixels(tmp_path):
    import hashlib

    photograph(80, 50).save(tmp_path / "a.jpg")
    pixels, digest = decode_hashed(tmp_path / "a.jpg", 32, "crop")
    assert np.array_equal(pixels, decode(tmp_path / "a.jpg", 32, "crop"))
    assert digest == hashlib.sha256((tmp_path / "a.jpg").read_bytes()).digest()


def test_a_folder_is_read_in_either_way(tmp_path):
    (tmp_path / "cat").mkdir()
    photograph(80, 50).save(tmp_path / "cat/tom.png")
    cut = folder(tmp_path, image_size=32, resize="crop")
    part = cut.subset([0]).images
    assert isinstance(part, LazyImages)
    assert part.resize == "crop"
    assert np.array_equal(cut.images[0], decode(tmp_path / "cat/tom.png", 32, "crop"))
    assert np.array_equal(load(str(tmp_path), "all", image_size=32, resize="crop").images[0], cut.images[0])
    assert not np.array_equal(folder(tmp_path, image_size=32).images[0], cut.images[0])


@pytest.mark.parametrize(
    ("resize", "message"),
    [
        ("stretch", r"resize must be 'square', 'crop' or 'crop\(R\)', such as 'crop\(256\)'; found 'stretch'"),
        ("crop()", r"found 'crop\(\)'"),
        (256, "found 256"),
        ("crop(31)", r"'crop\(31\)' gives a shorter side of 31 pixels, too few to cut 32 out of it"),
    ],
)
def test_a_way_that_cannot_be(class_folder, resize, message):
    with pytest.raises(InputError, match=message):
        load(str(class_folder), "all", image_size=32, resize=resize)


def test_an_unknown_way_is_refused_for_arrays_as_well():
    with pytest.raises(InputError, match="found 'stretch'"):
        load("digits", "test", resize="stretch")


def test_files_cannot_become_oblong():
    with pytest.raises(InputError, match=r"RGB squares, but small was made for images of \(3, 32, 48\)"):
        side_of([3, 32, 48], "small")


def test_corrupted_copies_are_made_of_what_was_cut_out(class_folder, tmp_path, capsys):
    photograph(80, 50).save(class_folder / "cat/0.png")
    out = tmp_path / "c"
    command = ["data", "corrupt", str(class_folder), "--split", "all", "--out", str(out), "--image-size", "32",
               "--corruptions", "contrast", "--severity", "3"]  # fmt: skip
    assert main([*command, "--resize", "crop"]) == 0
    flying = load(str(class_folder), "all", None, "contrast", 3, image_size=32, resize="crop")
    assert np.array_equal(np.load(out / "contrast.npy"), np.asarray(flying.images))
    assert main([*command, "--resize", "stretch", "--out", str(tmp_path / "d")]) == 2
    assert capsys.readouterr().err.strip().endswith("found 'stretch'")
