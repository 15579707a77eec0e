"""Folders of image files: layouts, modes, bad files, VisDA-C, ImageNet-C, and PACS."""

import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageOps

from ncttt.base.errors import InputError
from ncttt.data import batches, folder, load
from ncttt.data.files.archives import unpack
from ncttt.data.files.image_files import LazyImages, decode
from ncttt.data.sets.visda_c import VisdaC


def test_a_class_a_folder(class_folder):
    data = load(str(class_folder), "all", image_size=16)
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [0, 0, 0, 1, 1]
    assert data.images.shape == (5, 16, 16, 3)
    assert data.images[np.array([4, 0])][:, 8, 8].tolist() == [[200, 10, 0], [50, 0, 0]]


def test_nothing_is_decoded_before_it_is_needed(class_folder):
    (class_folder / "dog/1.png").write_bytes(b"not an image")
    data = folder(class_folder, image_size=8)
    assert data.images[np.arange(4)].shape == (4, 8, 8, 3)
    assert isinstance(data.subset([4, 0]).images, LazyImages)


def test_subfolders_are_splits(class_folder):
    root = class_folder.parent / "root"
    shutil.copytree(class_folder, root / "train")
    shutil.copytree(class_folder / "cat", root / "sketch/cat")
    assert len(load(str(root), "train")) == 5
    assert len(load(str(root), "sketch")) == 3
    assert len(load(str(root), "fit")) + len(load(str(root), "val")) == 5
    with pytest.raises(InputError, match="has no split 'skech'; did you mean 'sketch'"):
        load(str(root), "skech")


def test_corrupt_images_are_named_and_can_be_left_out(class_folder):
    broken = class_folder / "cat/1.png"
    broken.write_bytes(broken.read_bytes()[:60])
    data = load(str(class_folder), "all", image_size=8)
    with pytest.raises(InputError, match=r"cat/1\.png: cannot be read as an image"):
        list(batches(data, 2, workers=2))
    with pytest.warns(UserWarning, match=r"left out 1 of 5 images: .*cat/1\.png"):
        rest = load(str(class_folder), "all", image_size=8, skip_bad=True)
    assert rest.labels.tolist() == [0, 0, 1, 1]
    assert sum(len(labels) for _, labels in batches(rest, 3)) == 4


def test_skip_bad_does_not_hide_that_nothing_is_left(class_folder):
    for path in class_folder.rglob("*.png"):
        path.write_bytes(b"no")
    with pytest.raises(InputError, match="none of the 5 images can be read"):
        folder(class_folder, skip_bad=True)


def test_a_folder_without_images(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/notes.txt").write_text("no image")
    with pytest.raises(InputError, match="holds no images; expected <class>/<image>"):
        load(str(tmp_path), "all")


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*nowhere"):
        load(str(tmp_path / "nowhere"), "all")


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "CMYK", "I;16", "RGB"])
def test_every_mode_becomes_the_same_rgb(tmp_path, mode):
    white, deep_white = Image.new("RGB", (10, 10), "white"), Image.fromarray(np.full((10, 10), 65535, np.uint16))
    picture = deep_white if mode == "I;16" else white.convert(mode)
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    picture.save(path)
    assert (decode(path, 10) == 255).all()


def test_16_bit_grey_keeps_its_values(tmp_path):
    ramp = np.arange(256, dtype=np.uint16).reshape(16, 16) * 257
    Image.fromarray(ramp).save(tmp_path / "a.png")
    assert np.array_equal(decode(tmp_path / "a.png", 16)[..., 0], np.arange(256).reshape(16, 16))


def test_the_centre_is_cut_out(tmp_path):
    picture = np.zeros((10, 30, 3), np.uint8)
    picture[:, 10:20] = 255
    Image.fromarray(picture).save(tmp_path / "wide.png")
    assert (decode(tmp_path / "wide.png", 10) == 255).all()
    Image.fromarray(picture.transpose(1, 0, 2)).save(tmp_path / "tall.png")
    assert (decode(tmp_path / "tall.png", 10) == 255).all()


def test_scaling_the_central_square_equals_scaling_all_and_cutting(tmp_path):
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 60, 3), dtype=np.uint8))
    picture.save(tmp_path / "wide.png")
    whole = picture.resize((90, 30), Image.Resampling.BILINEAR)
    assert np.array_equal(decode(tmp_path / "wide.png", 30), np.asarray(whole)[:, 30:60])


def test_a_narrow_strip_is_not_blown_up(tmp_path, monkeypatch):
    made, resize = [], Image.Image.resize

    def noting(self, size, *args, **kwargs):
        made.append(size)
        return resize(self, size, *args, **kwargs)

    monkeypatch.setattr(Image.Image, "resize", noting)
    Image.new("RGB", (4000, 2)).save(tmp_path / "strip.png")
    assert decode(tmp_path / "strip.png", 224).shape == (224, 224, 3)
    assert made == [(224, 224)]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["png", "tif"])
def test_pictures_of_a_turned_camera_are_upright(tmp_path, orientation, kind):
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 12, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(tmp_path / f"a.{kind}", exif=exif)
    with Image.open(tmp_path / f"a.{kind}") as stored:
        upright = np.asarray(ImageOps.exif_transpose(stored).convert("RGB"))
    margins = [(side - 8) // 2 for side in upright.shape[:2]]
    expected = upright[margins[0] : margins[0] + 8, margins[1] : margins[1] + 8]
    assert np.array_equal(decode(tmp_path / f"a.{kind}", 8), expected)


def test_damaged_notes_of_a_camera_do_not_spoil_its_picture(tmp_path):
    Image.new("RGB", (8, 8), "white").save(tmp_path / "a.jpg", exif=b"Exif\0\0damaged")
    assert decode(tmp_path / "a.jpg", 8).min() > 250


@pytest.mark.parametrize("top", [1, 255])
def test_floats_up_to_1_or_255(tmp_path, top):
    ramp = np.linspace(0, top, 64, dtype=np.float32).reshape(8, 8)
    Image.fromarray(ramp).save(tmp_path / "a.tif")
    expected = np.round(np.linspace(0, 255, 64)).reshape(8, 8)
    assert np.array_equal(decode(tmp_path / "a.tif", 8)[..., 0], expected)


@pytest.mark.parametrize("value", [-1, 300, np.nan])
def test_other_floats_are_refused(tmp_path, value):
    Image.fromarray(np.full((8, 8), value, np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match=r"a\.tif: .*float values from .*; expected 0 to 1 or 0 to 255"):
        decode(tmp_path / "a.tif", 8)


def test_what_programs_leave_behind_is_neither_class_nor_image(class_folder):
    for left in (".ipynb_checkpoints", "__MACOSX", "cat/.thumbnails", "cat/__MACOSX"):
        shutil.copytree(class_folder / "dog", class_folder / left)
    shutil.copy(class_folder / "cat/0.png", class_folder / "cat/._0.png")
    data = folder(class_folder)
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_an_impossible_image_size(class_folder, size):
    with pytest.raises(InputError, match="image_size must be a number of pixels"):
        folder(class_folder, image_size=size)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"corruption": "fgo", "severity": 3}, "no corruption 'fgo'; did you mean 'fog'"),
        ({"corruption": "fog", "severity": 9}, "severity 9 of fog"),
        ({"corruption": "fog", "severity": 3, "seed": -1}, "seed -1"),
        ({"corruption": "fog", "severity": 3, "image_size": 500}, "500 x 500 pixels"),
    ],
)
def test_an_impossible_corruption_of_files_fails_before_they_are_decoded(class_folder, wrong, said):
    with pytest.raises(InputError, match=said):
        load(str(class_folder), "all", **({"image_size": 32} | wrong))


@pytest.mark.parametrize(
    "text", ["cat/0.png   0\ndog/1.png 1\n", "cat/0.png\t0\ndog/1.png \t1\n", "cat/0.png 0\r\ndog/1.png 1\r\n"]
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_spaces_tabs_line_ends_and_byte_order_marks_of_a_list(class_folder, text, mark):
    (class_folder / "image_list.txt").write_bytes(mark + text.encode())
    data = folder(class_folder, image_size=8)
    assert data.labels.tolist() == [0, 1]
    assert data.images[:][:, 4, 4, 0].tolist() == [50, 200]


@pytest.mark.parametrize(("encoding", "name"), [("latin-1", "k\xe4tzchen"), ("utf-16", "cat")])
def test_a_list_that_is_not_utf_8(class_folder, encoding, name):
    (class_folder / "image_list.txt").write_text(f"{name}/0.png 0\n", encoding=encoding)
    with pytest.raises(InputError, match=r"image_list\.txt is not UTF-8 text"):
        folder(class_folder)


@pytest.mark.parametrize("label", [20_000_000, 10**12, "9" * 5000])
def test_a_huge_label_names_no_millions_of_classes(class_folder, label):
    (class_folder / "image_list.txt").write_text(f"cat/0.png 0\ncat/1.png {label}\n")
    with pytest.raises(InputError, match=r"image_list\.txt, line 2: label \d{8,20} is not in 0\.\.99999"):
        folder(class_folder)


@pytest.fixture
def visda(tmp_path):
    """Two images a class in train (png) and validation (jpg), six in test, each with its list."""
    for split, kind in (("train", "png"), ("validation", "jpg"), ("test", "jpg")):
        lines = []
        for label in reversed(range(12)):
            place = f"trunk{label % 3:02d}" if split == "test" else VisdaC.classes[label]
            (tmp_path / "visda-c" / split / place).mkdir(parents=True, exist_ok=True)
            name = f"{place}/{label}_object 1.{kind}"
            Image.new("RGB", (24, 20), (20 * label, 0, 0)).save(tmp_path / "visda-c" / split / name)
            lines.append(f"{name} {label}")
        (tmp_path / "visda-c" / split / "image_list.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_visda_c(visda, split):
    data = load("visda-c", split, visda, image_size=16)
    assert data.classes == VisdaC.classes
    assert data.labels.tolist() == list(reversed(range(12)))
    red = data.images[np.arange(12)][:, 8, 8, 0].astype(int)
    assert np.abs(red - 20 * data.labels).max() <= 3


def test_a_list_line_without_a_label_is_named(visda):
    path = visda / "visda-c/test/image_list.txt"
    path.write_text("trunk00/0.jpg 0\ntrunk00/1.jpg\n")
    with pytest.raises(InputError, match=r"image_list\.txt, line 2: expected `path label`"):
        load("visda-c", "test", visda)


def test_a_list_with_a_label_out_of_range(visda):
    (visda / "visda-c/train/image_list.txt").write_text("bus/2_object 1.png 12\n")
    with pytest.raises(InputError, match=r"label 12 of image 0 is not in 0\.\.11"):
        load("visda-c", "train", visda)


def test_a_listed_file_that_is_missing_is_named(visda):
    (visda / "visda-c/train/bus/2_object 1.png").unlink()
    with pytest.raises(InputError, match=r"2_object 1\.png is missing"):
        np.asarray(load("visda-c", "train", visda).images)


def test_a_list_in_any_folder_names_its_classes_by_their_folders(visda):
    data = load(str(visda / "visda-c/train"), "all")
    assert data.classes == VisdaC.classes


def test_layout_of_imagenet_c(class_folder):
    root = class_folder.parent / "c"
    shutil.copytree(class_folder, root / "fog/3")
    data = load(str(root), "test", corruption="fog", severity=3, image_size=8)
    assert data.labels.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.shared
def test_pacs(shared, tmp_path):
    with zipfile.ZipFile(shared / "data/pacs64.zip") as everything, zipfile.ZipFile(tmp_path / "few.zip", "w") as few:
        names = [name for name in everything.namelist() if name.endswith(".jpg")]
        for place in ("pacs64/photo/dog", "pacs64/photo/house", "pacs64/sketch/horse"):
            for name in [name for name in names if name.startswith(place)][:10]:
                few.writestr(name, everything.read(name))
    unpack(tmp_path / "few.zip", tmp_path)
    photo = load(str(tmp_path / "pacs64"), "photo", image_size=64)
    assert photo.classes == ("dog", "house")
    assert np.bincount(photo.labels).tolist() == [10, 10]
    sketch = load(str(tmp_path / "pacs64"), "sketch", image_size=64)
    # A sketch is mostly white paper; a photograph is not.
    assert np.asarray(sketch.images).mean() > 200 > np.asarray(photo.images).mean()
    with Image.open(photo.images.paths[0]) as original:
        assert np.array_equal(photo.images[0], np.asarray(original.convert("RGB")))
