"""PACS: drawings to train on, photographs to adapt to; image files, decoded when they are needed."""

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.base.errors import InputError
from ncttt.data import files
from ncttt.data.files.imageset import ImageSet
from ncttt.data.sets.base import OK, DataSet, Findings

DOMAINS = {"train": ("art_painting", "cartoon", "sketch"), "test": ("photo",)}
COUNTS = {"art_painting": 2048, "cartoon": 2344, "sketch": 3929, "photo": 1670}  # as published


class Pacs(DataSet):
    """Seven classes in four domains, `<domain>/<class>/<image>`: the three of drawings are joined to `train`."""

    name = "pacs"
    place = 9
    title = "PACS: 7 classes, drawings (art painting, cartoon, sketch: train) against photographs (test)"
    classes = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
    splits = ("train", "fit", "val", "test")
    folder = "pacs"

    def read(self, root: Path, split: str, **options: Any) -> ImageSet:
        parts = [self._read_domain(root, domain, **options) for domain in DOMAINS[split]]
        return replace(joined(parts), name=f"{self.name} {split}")

    def present(self, root: Path) -> bool:
        return all((self.where(root) / domain).is_dir() for domain in COUNTS)

    def check(self, root: Path) -> Findings:
        self.require(root)
        return {domain: self._check_domain(root, domain, count) for domain, count in COUNTS.items()}

    def advice(self, root: Path) -> str:
        return f"put its four domains into {self.where(root)}: {'/, '.join(COUNTS)}/, each with <class>/<image>"

    def _read_domain(self, root: Path, domain: str, **options: Any) -> ImageSet:
        folder = self.where(root) / domain
        for place in (folder, *(folder / name for name in self.classes)):
            if not place.is_dir():
                raise InputError(f"{place} is missing; {self.advice(root)}")
        return files.folder(folder, classes=self.classes, **options)

    def _check_domain(self, root: Path, domain: str, expected: int) -> str:
        try:
            found = len(self._read_domain(root, domain))
        except InputError as error:
            return str(error)
        return OK if found == expected else f"{found} images, published were {expected}"


def joined(parts: list[ImageSet]) -> ImageSet:
    """Sets of image files of the same classes as one set, in the order given, still undecoded."""
    images = [part.images for part in parts if isinstance(part.images, files.LazyImages)]
    together = copy(images[0])  # with the decoding that was asked for
    together.paths = [path for some in images for path in some.paths]
    return replace(parts[0], images=together, labels=np.concatenate([part.labels_for("PACS") for part in parts]))
