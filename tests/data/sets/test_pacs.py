"""PACS: drawings joined over three domains, photographs as test, what is missing, and the real set."""

import numpy as np
import pytest
from PIL import Image

from ncttt.base.errors import InputError
from ncttt.cli import main
from ncttt.data import check, list_sets, load
from ncttt.data.files.archives import unpack
from ncttt.data.files.image_files import LazyImages
from ncttt.data.sets.pacs import COUNTS, DOMAINS, Pacs

CLASSES = ["dog", "elephant", "giraffe", "guitar", "horse", "house", "person"]


@pytest.fixture
def root(tmp_path):
    """Two images a class and domain, of a red by domain and a green by class, with 20 x 16 pixels."""
    for number, domain in enumerate(COUNTS):
        for label, name in enumerate(CLASSES):
            place = tmp_path / "pacs" / domain / name
            place.mkdir(parents=True)
            for image in range(2):
                Image.new("RGB", (20, 16), (60 * number, 30 * label, 0)).save(place / f"{image}.png")
    return tmp_path


def test_the_training_part_joins_the_drawings_in_a_fixed_order(root):
    train = load("pacs", "train", root, image_size=16)
    assert train.classes == tuple(CLASSES)
    assert train.labels.tolist() == 3 * [label for label in range(7) for _ in range(2)]
    assert isinstance(train.images, LazyImages)
    assert train.images.shape == (42, 16, 16, 3)
    pixels = np.asarray(train.images)[:, 8, 8]
    assert pixels[:, 0].tolist() == [60 * domain for domain in range(3) for _ in range(14)]
    assert (pixels[:, 1] == 30 * train.labels).all()


def test_photographs_are_the_test_part_and_no_part_of_the_others(root):
    test, fit, val = (load("pacs", split, root, image_size=16) for split in ("test", "fit", "val"))
    assert (len(test), len(fit), len(val)) == (14, 38, 4)
    assert {path.split("pacs/")[1].split("/")[0] for path in test.images.paths} == {"photo"}
    assert not set(fit.images.paths) & set(val.images.paths)
    assert {path.split("pacs/")[1].split("/")[0] for path in fit.images.paths} == set(DOMAINS["train"])


def test_a_bad_file_is_left_out_when_told(root):
    (root / "pacs/cartoon/dog/0.png").write_text("no picture")
    with pytest.warns(UserWarning, match="left out 1 of 14 images"):
        assert len(load("pacs", "train", root, skip_bad=True)) == 41


def test_a_missing_class_or_domain_is_named(root, capsys):
    for image in (root / "pacs/sketch/horse").iterdir():
        image.unlink()
    (root / "pacs/sketch/horse").rmdir()
    with pytest.raises(InputError, match=r"sketch/horse is missing; put its four domains into .*pacs: art_painting/, "):
        load("pacs", "train", root)
    assert len(load("pacs", "test", root)) == 14
    assert check("pacs", root)["photo"] == "14 images, published were 1670"
    assert "horse is missing" in check("pacs", root)["sketch"]
    assert list_sets(root)["pacs"]["present"]
    (root / "pacs/photo").rename(root / "pacs/photos")
    assert not list_sets(root)["pacs"]["present"]
    capsys.readouterr()
    assert main(["data", "get", "pacs", "--root", str(root / "nowhere")]) == 2
    assert capsys.readouterr().err.strip().count("\n") == 0


@pytest.mark.shared
def test_the_real_set_has_its_published_number_of_images(shared, tmp_path):
    unpack(shared / "data/pacs64.zip", tmp_path)
    (tmp_path / "pacs64").rename(tmp_path / "pacs")
    assert set(check("pacs", tmp_path).values()) == {"ok"}
    train, test = load("pacs", "train", tmp_path, image_size=64), load("pacs", "test", tmp_path, image_size=64)
    assert len(train) + len(test) == sum(COUNTS.values()) == 9_991
    assert train.classes == test.classes == Pacs.classes
    assert set(train.labels) == set(test.labels) == set(range(7))
    with Image.open(test.images.paths[-1]) as original:
        assert np.array_equal(test.images[-1], np.asarray(original.convert("RGB")))
