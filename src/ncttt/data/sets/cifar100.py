"""CIFAR-100 as published, in its binary or its Python version."""

from pathlib import Path
from typing import Any

from ncttt.base.errors import InputError
from ncttt.data.files.cifar_files import TORONTO, entry, joined, read_batch, read_pickle, read_records
from ncttt.data.files.imageset import ImageSet
from ncttt.data.sets.base import Download
from ncttt.data.sets.cifar import Cifar

CLASSES_IN_ORDER = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel
can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree
pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea
seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CLASSES = tuple(CLASSES_IN_ORDER.split())


class Cifar100(Cifar):
    """The 50,000 training or 10,000 test images with the 100 fine labels, uint8 (N, 32, 32, 3).

    The binary version (`cifar-100-binary`) is read if it is there, else the Python version (`cifar-100-python`).
    """

    name = "cifar100"
    place = 3
    title = "CIFAR-100: 60,000 photographs at 32x32, 100 classes"
    classes = CLASSES
    splits = ("train", "fit", "val", "test")
    folder = "cifar-100-binary"
    downloads = (Download(TORONTO + "cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8"),)
    hashes = {  # noqa: RUF012 - a fact, never changed
        "train.bin": "md5:6172c7755cfe09b2fe270c85cebc1b15",
        "test.bin": "md5:4499cfba6c016c1be1438163640a0898",
    }
    pickled_folder = "cifar-100-python"
    pickled_hashes = {  # noqa: RUF012 - a fact, never changed
        "train": "md5:16019d7e3df5f24257cddd939b257f8d",
        "test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "md5:7973b15100ade9c7d40fb424638fde48",
    }
    bytes = 168_513_733

    def read(self, root: Path, split: str, **options: Any) -> ImageSet:
        folder, title = self.where(root), f"{self.name} {split}"
        if self.pickled(root):
            classes = _class_names(folder / "meta")
            return joined([read_batch(folder / split, b"fine_labels")], classes, title)
        return joined([read_records(folder / f"{split}.bin", labels=2)], self.classes, title)


def _class_names(meta: Path) -> tuple[str, ...]:
    names = entry(read_pickle(meta), b"fine_label_names", meta)
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise InputError(f"{meta}: `fine_label_names` must be a list of names, found {names!r:.60}")
    return tuple(name.decode("utf-8", "replace") for name in names)
