"""VisDA-C: renderings to train on, photographs to adapt to; image files, decoded when they are needed."""

from pathlib import Path
from typing import Any

from ncttt.base.errors import InputError
from ncttt.data import files
from ncttt.data.files.imageset import ImageSet
from ncttt.data.sets.base import OK, DataSet, Download, Findings

HOME = "https://csr.bu.edu/ftp/visda17/clf/"
LIST = "image_list.txt"
CLASSES = (
    *("aeroplane", "bicycle", "bus", "car", "horse", "knife"),
    *("motorcycle", "person", "plant", "skateboard", "train", "truck"),
)
COUNTS = {"train": 152_397, "validation": 55_388, "test": 72_372}


class VisdaC(DataSet):
    """The images of a part, with lazy decoding; its own `validation` is the target domain."""

    name = "visda-c"
    place = 8
    title = "VisDA-C: 12 classes, renderings (train) against photographs (validation, test)"
    classes = CLASSES
    splits = ("train", "fit", "val", "validation", "test")
    folder = "visda-c"
    # Their home publishes no checksums: `get` keeps those of the first fetch, and `check` counts the images.
    downloads = tuple(Download(f"{HOME}{part}.tar", None, part) for part in COUNTS)

    def read(self, root: Path, split: str, **options: Any) -> ImageSet:
        return files.folder(self.where(root) / split, classes=self.classes, **options)

    def check(self, root: Path) -> Findings:
        self.require(root)
        return {split: self._check_part(root, split, count) for split, count in COUNTS.items()}

    def _check_part(self, root: Path, split: str, expected: int) -> str:
        if not (self.where(root) / split / LIST).is_file():
            return f"no {LIST}"
        try:
            images = self.read(root, split).images
        except InputError as error:
            return str(error)
        assert isinstance(images, files.LazyImages)
        absent = [path for path in images.paths if not Path(path).is_file()]
        if absent:
            return f"{len(absent)} listed files are missing, first {absent[0]}"
        return OK if len(images) == expected else f"{len(images)} images, published were {expected}"
