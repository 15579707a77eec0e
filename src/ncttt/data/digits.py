"""scikit-learn's 1,797 handwritten digits as 32x32 colour images: real data that needs no download."""

from functools import cache

import numpy as np
from PIL import Image

from ncttt.data.imageset import ImageSet
from ncttt.data.splits import stratified

SIZE = 32
TEST = 500
CLASSES = tuple("0123456789")


def digits(split: str) -> ImageSet:
    """The 1,297 training ("train") or 500 test ("test") images, uint8 (N, 32, 32, 3).

    >>> digits("test").images.shape
    (500, 32, 32, 3)
    """
    images, labels = _all()
    train, test = stratified(labels, TEST)
    chosen = {"train": train, "test": test}[split]
    return ImageSet(images[chosen], labels[chosen], CLASSES, name=f"digits {split}")


@cache
def _all() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    grey = np.stack([_enlarge(image) for image in np.asarray(pixels).reshape(-1, 8, 8)])
    return np.repeat(grey[..., None], 3, axis=-1), np.asarray(labels, np.int64)


def _enlarge(image: np.ndarray) -> np.ndarray:
    # 0..16 -> 0..255, then smooth enlargement; Pillow clips what bicubic overshoots.
    grey = Image.fromarray(np.round(image * (255 / 16)).astype(np.uint8))
    return np.asarray(grey.resize((SIZE, SIZE), Image.Resampling.BICUBIC))
