"""What every reader returns: images, labels and the names of the classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ncttt.base.errors import InputError

MOST_CLASSES = 100_000  # far above any set; a label beyond is an identifier or damage


class Images(Protocol):
    """uint8 (N, H, W, C): an array, a memory map, or a sequence that reads files or items when it is indexed.

    Those of a Dataset of PyTorch may be float32, too.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Any, /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images uint8 (N, H, W, C) of three channels or one, labels int64 (N,) and class names; checked when it is made.

    A set without labels has None in their place. A set is a map-style Dataset of PyTorch: `data[3]` is the image, float
    (C, H, W) in [0, 1], and its label, or the image alone; `data[3:9]` is a set.

    >>> import numpy as np
    >>> data = ImageSet(np.zeros((3, 32, 32, 3), np.uint8), np.array([0, 1, 1]), ("cat", "dog"), name="pets")
    >>> len(data), data.labels.dtype.name, data.subset([2]).labels.tolist()
    (3, 'int64', [1])
    >>> image, label = data[1]
    >>> image.shape, label
    (torch.Size([3, 32, 32]), 1)
    """

    images: Images
    labels: np.ndarray | None = None
    classes: tuple[str, ...] = ()
    name: str = "images"

    def __post_init__(self) -> None:
        check_images(self.images, self.name)
        if isinstance(self.classes, str) or not isinstance(self.classes, Sequence):
            raise InputError(f"{self.name}: classes must be a sequence of names, found {self.classes!r}")
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.labels is None:
            return
        labels = check_labels(self.labels, len(self.classes), self.name)
        if len(labels) != len(self.images):
            raise InputError(f"{self.name}: {len(self.images)} images but {len(labels)} labels")
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int | np.integer):
            return self.subset(np.arange(len(self))[index])
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has {len(self)} images; there is no image {index}")
        import torch  # reading lists of sets does without

        image = torch.from_numpy(np.ascontiguousarray(self.images[int(index) % len(self)])).permute(2, 0, 1)
        image = image.float() / 255 if image.dtype == torch.uint8 else image
        return image if self.labels is None else (image, int(self.labels[index]))

    def labels_for(self, purpose: str) -> np.ndarray:
        """The labels; an `InputError` that says what needs them, if there are none."""
        if self.labels is None:
            raise InputError(f"{self.name} has no labels, which {purpose} needs")
        return self.labels

    def __repr__(self) -> str:
        size = "x".join(map(str, self.images.shape[1:3]))
        known = "no labels" if self.labels is None else f"{len(self.classes)} classes"
        return f"ImageSet({self.name!r}, {len(self)} images of {size}, {known})"

    def subset(self, indices: Sequence[int] | np.ndarray) -> "ImageSet":
        """The images at `indices`, in that order; lazy images stay lazy."""
        indices = np.asarray(indices, dtype=np.int64)
        select = getattr(self.images, "select", self.images.__getitem__)
        labels = None if self.labels is None else self.labels[indices]
        return replace(self, images=select(indices), labels=labels)


def check_images(images: Images, name: str) -> None:
    """Raise an `InputError` unless these are uint8 (N, H, W, 3) or (N, H, W, 1)."""
    shape, dtype = getattr(images, "shape", ()), getattr(images, "dtype", np.dtype(np.uint8))
    known = dtype == np.uint8 or (dtype == np.float32 and not isinstance(images, np.ndarray))
    if len(shape) != 4 or shape[3] not in (1, 3) or not known:
        raise InputError(f"{name}: images must be uint8 (N, H, W, 3), found {type(images).__name__} {dtype} {shape}")


def as_bytes(images: np.ndarray) -> np.ndarray:
    """Images as uint8, floats in [0, 1] rounded to 255 steps; an error for other floats.

    >>> as_bytes(np.array([0, 0.5, 1], np.float32)).tolist()
    [0, 128, 255]
    """
    if images.dtype == np.uint8:
        return images
    low, high = (float(bound(images)) for bound in (np.min, np.max)) if images.size else (0.0, 0.0)
    if not 0 <= low <= high <= 1:
        raise InputError(
            f"images of a grid or to corrupt must lie in [0, 1]; found {low:.3g} to {high:.3g}: leave their "
            "normalisation to the model (mean= and std= of ncttt.attach)"
        )
    return np.round(images * 255).astype(np.uint8)


def check_labels(labels: Any, classes: int, name: str) -> np.ndarray:
    """Labels as int64 (N,), or an error that names the first one outside 0 .. classes - 1.

    >>> check_labels([0, 2], 3, "toy")
    array([0, 2])
    """
    labels = integers(labels, name)
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        first = wrong[0]
        raise InputError(f"{name}: label {labels[first]} of image {first} is not in 0..{classes - 1}")
    return labels.astype(np.int64)


def integers(labels: Any, name: str) -> np.ndarray:
    """Labels as an array of integers (N,), whatever a file gave for them; else an error."""
    try:
        array = np.asarray(labels)
    except ValueError:
        raise InputError(f"{name}: labels must be integers (N,), found lists of different lengths") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        found = f"{array.dtype} {array.shape}" if array.ndim else f"{labels!r:.60}"
        raise InputError(f"{name}: labels must be integers (N,), found {found}")
    return array


def numbered(labels: np.ndarray, name: str) -> tuple[str, ...]:
    """Names for classes that are known by number only.

    >>> numbered(np.array([0, 2], np.uint8), "toy")
    ('0', '1', '2')
    """
    largest = int(labels.max()) if len(labels) else -1
    if largest >= MOST_CLASSES:
        raise InputError(f"{name}: label {largest} would mean more than {MOST_CLASSES:,} classes; number them from 0")
    return tuple(map(str, range(largest + 1)))
