"""Small data sets in the exact layouts of those that the paper uses, and of the one that stands for VisDA-C."""

from pathlib import Path

import numpy as np
from PIL import Image

from ncttt.data.corruptions import CORRUPTIONS
from ncttt.data.sets.pacs import COUNTS, Pacs
from ncttt.data.sets.visda_c import CLASSES as VISDA

EACH = 16


def write_cifar(root: Path, classes: int) -> None:
    """CIFAR-10 or CIFAR-100 in its binary version: 100 images to train on, 20 to test."""
    random = np.random.default_rng(0)
    folder = root / ("cifar-10-batches-bin" if classes == 10 else "cifar-100-binary")
    folder.mkdir(parents=True)
    names = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"] if classes == 10 else ["train", "test"]
    for name in names:
        count = 20 if "batch" in name or name == "test" else 10 * classes
        fine = np.arange(count) % classes
        labels = fine[:, None] if classes == 10 else np.stack([fine // 5, fine], axis=1)
        pixels = random.integers(0, 256, (count, 3072))
        (folder / f"{name}.bin").write_bytes(np.concatenate([labels, pixels], axis=1).astype(np.uint8).tobytes())


def write_cifar10_c(root: Path) -> None:
    """The published arrays of CIFAR-10-C, with a few images."""
    random, folder = np.random.default_rng(1), root / "CIFAR-10-C"
    folder.mkdir(parents=True)
    from ncttt.data.sets.cifar_c import Cifar10C

    for name in Cifar10C.hashes:
        np.save(folder / name, random.integers(0, 256, (5 * EACH, 32, 32, 3), dtype=np.uint8))
    np.save(folder / "labels.npy", np.tile(np.arange(EACH) % 10, 5).astype(np.uint8))
    assert {f"{name}.npy" for name in CORRUPTIONS} <= set(Cifar10C.hashes)


def write_pacs(root: Path, each: int = 6) -> None:
    """PACS, `each` images of noise around a colour for every class and domain."""
    _write_classes(root / "pacs", {domain: [f"{domain}/{name}" for name in Pacs.classes] for domain in COUNTS}, each)


def write_visda(root: Path, each: int = 10) -> None:
    """VisDA-C: renderings and validation photographs by class, test frames in trunks, each with its list."""
    home = root / "visda-c"
    folders = {part: [f"{part}/{name}" for name in VISDA] for part in ("train", "validation")}
    _write_classes(home, folders, each)
    _write_classes(home, {"test": [f"test/trunk{number:02d}" for number in range(len(VISDA))]}, 2)
    for part in ("train", "validation", "test"):
        files = sorted((home / part).glob("*/*.png"))
        places = {name: label for label, name in enumerate(sorted({file.parent.name for file in files}))}
        lines = [f"{file.relative_to(home / part)} {places[file.parent.name]}" for file in files]
        (home / part / "image_list.txt").write_text("\n".join(lines) + "\n")


def _write_classes(home: Path, folders: dict[str, list[str]], each: int) -> None:
    random = np.random.default_rng(2)
    for places in folders.values():
        for label, place in enumerate(places):
            (home / place).mkdir(parents=True)
            for number in range(each):
                noise = random.integers(-40, 40, (24, 30, 3))
                pixels = np.clip(noise + np.array([20 * label, 120, 255 - 20 * label]), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(home / place / f"{number}.png")
