"""Are files sorted by class? Told without labels, from what the model predicts for a few images of each batch.

Batch statistics of a batch with one class are wrong for it, and `<class>/<image>` is the commonest layout of folders.
Images of one batch, drawn from all over the stream, are predicted in mixed company, where batch statistics are sound;
if those of a batch then agree with each other more often than with those of other batches, the order follows the
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from ncttt.model.branched import Branched
from ncttt.model.norm import statistics

IMAGES = 256  # drawn in all: a share of 0.1 is thirteen standard errors for ten classes in sixteen batches
GROUPS = 16  # at most so many batches are looked at
COMPANY = 128  # predicted together
AGREEMENT = 0.1  # of a possible 1; a batch of ten classes in which one has a third of the images
SHUFFLES = 999


def drawn(groups: Sequence[Sequence[str]], seed: int) -> dict[str, int]:
    """Some files of evenly spaced groups, in random order, with the number of their group."""
    random = np.random.default_rng(seed)
    chosen = np.unique(np.linspace(0, len(groups) - 1, min(GROUPS, len(groups))).round().astype(int))
    each = IMAGES // len(chosen)
    files = [(file, int(g)) for g in chosen for file in random.permutation(np.asarray(groups[g], object))[:each]]
    return dict(files[place] for place in random.permutation(len(files)))


@torch.no_grad()
def predicted(model: Branched, images: Tensor) -> np.ndarray:
    """Classes `(N,)` of images `(N, C, H, W)` with the statistics of the company that they are in."""
    parts = images.tensor_split(max(1, round(len(images) / COMPANY)))
    layers = model.batch_norms()
    with statistics(layers, "batch" if layers else "source"):
        return torch.cat([model(part.to(model.mean)).argmax(1) for part in parts]).cpu().numpy()


def follows(classes: np.ndarray, groups: np.ndarray) -> bool:
    """Whether the classes `(N,)` of images depend on the groups `(N,)` that they are in, more than chance explains.

    >>> groups = np.repeat([0, 1, 2], 20)
    >>> follows(np.repeat([0, 1, 2], 20), groups), follows(np.tile([0, 1, 2], 20), groups)
    (True, False)
    """
    if len(np.unique(groups)) < 2 or len(np.unique(classes)) < 2:
        return False
    agreement = _agreement(classes, groups)
    if agreement < AGREEMENT:
        return False
    random = np.random.default_rng(0)
    return all(_agreement(random.permutation(classes), groups) < agreement for _ in range(SHUFFLES))


def _agreement(classes: np.ndarray, groups: np.ndarray) -> float:
    """How much more often two images of one group have the same class than any two have, of what is possible."""
    table = np.zeros((groups.max() + 1, classes.max() + 1))
    np.add.at(table, (groups, classes), 1)
    inside, everywhere = _same(table), _same(table.sum(0, keepdims=True))
    return (inside - everywhere) / (1 - everywhere)


def _same(counts: np.ndarray) -> float:
    """The share of pairs of a row with the same class, of counts `(rows, classes)`."""
    return float(_pairs(counts) / max(1, _pairs(counts.sum(1))))


def _pairs(counts: np.ndarray) -> float:
    return (counts * (counts - 1)).sum()


def one_class_each(classes: np.ndarray, groups: np.ndarray) -> bool:
    """Whether most images of every group have the same class, but not in all groups the same.

    >>> one_class_each(np.array([0, 0, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 1, 1]))
    True
    """
    counts = [np.bincount(classes[groups == group]) for group in np.unique(groups)]
    commonest = {int(count.argmax()) for count in counts}
    return len(commonest) > 1 and all(2 * count.max() >= count.sum() for count in counts)


class ClassOrder:
    """Looks at what a model predicts for some files of groups, batches or folders.

    `read` gives those of some files that can be read, and their pixels, uint8 `(N, H, W, 3)`.
    """

    def __init__(self, model: Branched, read: Callable[[Sequence[str]], tuple[Sequence[str], np.ndarray]]):
        self._model, self._read = model, read

    def sorted_by_class(self, batches: Sequence[Sequence[str]]) -> bool:
        """Whether batches of files differ in their classes."""
        return self._judged(batches, follows)

    def folder_per_class(self, folders: Sequence[Sequence[str]]) -> bool:
        """Whether the files of each folder are of one class."""
        return self._judged(folders, one_class_each)

    def _judged(self, groups: Sequence[Sequence[str]], judge: Callable[[np.ndarray, np.ndarray], bool]) -> bool:
        if len(groups) < 2:
            return False
        group_of = drawn(groups, seed=0)
        files, pixels = self._read(list(group_of))
        if len(files) < 2:
            return False
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255)
        return judge(predicted(self._model, images), np.asarray([group_of[file] for file in files]))
