"""Folders of image files: layouts, modes, bad files, VisDA-C, ImageNet-C, and PACS."""

import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image

from ncttt.data import batches, folder, load
from ncttt.data.archives import unpack
from ncttt.data.classes import VISDA
from ncttt.data.decoding import decode
from ncttt.data.lazy import LazyImages
from ncttt.errors import InputError


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


@pytest.fixture
def visda(tmp_path):
    """Two images a class in train (png) and validation (jpg), six in test, each with its list."""
    for split, kind in (("train", "png"), ("validation", "jpg"), ("test", "jpg")):
        lines = []
        for label in reversed(range(12)):
            place = f"trunk{label % 3:02d}" if split == "test" else VISDA[label]
            (tmp_path / "visda-c" / split / place).mkdir(parents=True, exist_ok=True)
            name = f"{place}/{label}_object 1.{kind}"
            Image.new("RGB", (24, 20), (20 * label, 0, 0)).save(tmp_path / "visda-c" / split / name)
            lines.append(f"{name} {label}")
        (tmp_path / "visda-c" / split / "image_list.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_visda_c(visda, split):
    data = load("visda-c", split, visda, image_size=16)
    assert data.classes == VISDA
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
    assert data.classes == VISDA


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
