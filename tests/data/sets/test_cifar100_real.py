"""CIFAR-100 itself, restored from the folder beside the project."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ncttt.data import check, list_sets, load

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def root(shared, tmp_path_factory) -> Path:
    restore = shared / "data/cifar100/restore.py"
    if not restore.is_file():
        pytest.skip("no CIFAR-100 in the shared folder")
    folder = tmp_path_factory.mktemp("cifar100")
    subprocess.run([sys.executable, str(restore), str(folder)], check=True, capture_output=True)
    return folder


def test_its_files_have_the_official_hashes(root):
    assert check("cifar100", root) == {"train.bin": "ok", "test.bin": "ok"}
    assert list_sets(root)["cifar100"]["present"]


@pytest.mark.parametrize(("split", "each"), [("train", 500), ("fit", 450), ("val", 50), ("test", 100)])
def test_its_splits_hold_equally_many_images_of_every_class(root, split, each):
    data = load("cifar100", split, root)
    assert data.images.shape == (100 * each, 32, 32, 3)
    assert np.bincount(data.labels, minlength=100).tolist() == [each] * 100


def test_its_planes_are_red_green_and_blue(root):
    # The published per-channel mean of the training images.
    images = np.asarray(load("cifar100", "train", root).images)
    assert images.mean((0, 1, 2)) / 255 == pytest.approx([0.5071, 0.4865, 0.4409], abs=1e-4)
