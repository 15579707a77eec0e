"""CIFAR-10.1, new test images for CIFAR-10, in its versions 4 and 6."""

from pathlib import Path
from typing import Any

from ncttt.data.files.arrays import read_images, read_labels
from ncttt.data.files.imageset import ImageSet
from ncttt.data.sets import cifar10
from ncttt.data.sets.base import DataSet, Download

HOME = "https://github.com/modestyachts/CIFAR-10.1/raw/master/datasets/"
V4 = {
    "cifar10.1_v4_data.npy": "sha256:5aaedc268df8f4cffca2ac0cf9e608ae1897a8cddb630c7a850a2ea8f6558e75",
    "cifar10.1_v4_labels.npy": "sha256:1f9544300ded199539b6662364ce7fe6c2e1ea9f87408f06db4b1a6184cffb18",
}
V6 = {
    "cifar10.1_v6_data.npy": "sha256:2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6",
    "cifar10.1_v6_labels.npy": "sha256:ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448",
}


class Cifar101(DataSet):
    """Images uint8 (N, 32, 32, 3) of one version, memory-mapped."""

    version: str
    classes = cifar10.CLASSES
    splits = ("test",)
    folder = "cifar-10.1"
    archive = False

    def read(self, root: Path, split: str, **options: Any) -> ImageSet:
        images = read_images(self.where(root) / f"cifar10.1_{self.version}_data.npy")
        labels = read_labels(self.where(root) / f"cifar10.1_{self.version}_labels.npy")
        return ImageSet(images, labels, self.classes, name=f"cifar10.1 {self.version}")


class Cifar101V4(Cifar101):
    """Version 4."""

    name = "cifar10.1-v4"
    place = 6
    title = "CIFAR-10.1 v4: 2,021 new test images for CIFAR-10"
    version = "v4"
    downloads = tuple(Download(HOME + file, digest) for file, digest in V4.items())
    hashes = V4
    bytes = 6_216_852


class Cifar101V6(Cifar101):
    """Version 6, with as many images of each class."""

    name = "cifar10.1-v6"
    place = 7
    title = "CIFAR-10.1 v6: 2,000 new test images for CIFAR-10, balanced"
    version = "v6"
    downloads = tuple(Download(HOME + file, digest) for file, digest in V6.items())
    hashes = V6
    bytes = 6_152_256
