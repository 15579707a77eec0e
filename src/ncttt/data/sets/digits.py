"""scikit-learn's 1,797 handwritten digits as 32x32 colour images: real data that needs no download."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ncttt.data.files.imageset import ImageSet
from ncttt.data.files.splits import stratified
from ncttt.data.sets.base import OK, DataSet, Findings

SIZE = 32
COUNTS = {"train": 1297, "test": 500}


class Digits(DataSet):
    """The 1,297 training ("train") or 500 test ("test") images, uint8 (N, 32, 32, 3)."""

    name = "digits"
    place = 1
    title = "1,797 handwritten digits of scikit-learn at 32x32"
    classes = tuple("0123456789")
    splits = ("train", "fit", "val", "test")
    bytes = 0
    constants = "imagenet"  # digits are drawn thick and without texture: those for small images hardly shift them

    def read(self, root: Path, split: str, **options: Any) -> ImageSet:
        images, labels = _all()
        train, test = stratified(labels, COUNTS["test"])
        chosen = {"train": train, "test": test}[split]
        return ImageSet(images[chosen], labels[chosen], self.classes, name=f"{self.name} {split}")

    def where(self, root: Path) -> Path:
        spec = find_spec("sklearn")
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin).parent

    def check(self, root: Path) -> Findings:
        return {split: OK if len(self.read(root, split)) == count else "incomplete" for split, count in COUNTS.items()}


@cache
def _all() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits  # takes a second, and a list of data sets does without

    pixels, labels = load_digits(return_X_y=True)
    grey = np.stack([_enlarge(image) for image in np.asarray(pixels).reshape(-1, 8, 8)])
    return np.repeat(grey[..., None], 3, axis=-1), np.asarray(labels, np.int64)


def _enlarge(image: np.ndarray) -> np.ndarray:
    from PIL import Image  # for the same reason

    # 0..16 -> 0..255, then smooth enlargement; Pillow clips what bicubic overshoots.
    grey = Image.fromarray(np.round(image * (255 / 16)).astype(np.uint8))
    return np.asarray(grey.resize((SIZE, SIZE), Image.Resampling.BICUBIC))
