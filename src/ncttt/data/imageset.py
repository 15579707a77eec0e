"""What every reader returns: images, labels and the names of the classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ncttt.errors import InputError


class Images(Protocol):
    """uint8 (N, H, W, 3): an array, a memory map, or a sequence that decodes files when it is indexed."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Any, /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images uint8 (N, H, W, 3), labels int64 (N,) and class names; checked when it is made.

    >>> import numpy as np
    >>> data = ImageSet(np.zeros((3, 32, 32, 3), np.uint8), np.array([0, 1, 1]), ("cat", "dog"), name="pets")
    >>> len(data), data.labels.dtype.name, data.subset([2]).labels.tolist()
    (3, 'int64', [1])
    """

    images: Images
    labels: np.ndarray
    classes: tuple[str, ...]
    name: str = "images"

    def __post_init__(self) -> None:
        labels = check_labels(self.labels, len(self.classes), self.name)
        if len(labels) != len(self.images):
            raise InputError(f"{self.name}: {len(self.images)} images but {len(labels)} labels")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "classes", tuple(self.classes))

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, indices: Sequence[int] | np.ndarray) -> "ImageSet":
        """The images at `indices`, in that order; lazy images stay lazy."""
        indices = np.asarray(indices, dtype=np.int64)
        select = getattr(self.images, "select", self.images.__getitem__)
        return replace(self, images=select(indices), labels=self.labels[indices])


def check_labels(labels: np.ndarray, classes: int, name: str) -> np.ndarray:
    """Labels as int64 (N,), or an error that names the first one outside 0 .. classes - 1.

    >>> check_labels([0, 2], 3, "toy")
    array([0, 2])
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise InputError(f"{name}: labels must be integers (N,), found {labels.dtype} {labels.shape}")
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        first = wrong[0]
        raise InputError(f"{name}: label {labels[first]} of image {first} is not in 0..{classes - 1}")
    return labels.astype(np.int64)
