"""Fixed, seeded, stratified splits: the same images on every machine and in every run."""

from dataclasses import replace

import numpy as np

from ncttt.data.files.imageset import ImageSet

SEED = 20240
HELD_OUT = 0.1


def held_out(data: ImageSet, split: str) -> ImageSet:
    """Of a whole training part: its fixed 90 % ("fit") or 10 % ("val"), stratified by class."""
    fit, val = stratified(data.labels_for("a split"), round(len(data) * HELD_OUT))
    part = data.subset(fit if split == "fit" else val)
    return replace(part, name=f"{data.name.removesuffix(' train')} {split}")


def stratified(labels: np.ndarray, held_out: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Indices (kept, held out), both sorted; every class gives its share of exactly `held_out` images.

    >>> kept, held = stratified(np.array([0, 0, 0, 0, 1, 1, 1, 1]), held_out=4)
    >>> len(kept), np.bincount(np.array([0, 0, 0, 0, 1, 1, 1, 1])[held]).tolist()
    (4, [2, 2])
    """
    # Written out with PCG64 rather than taken from scikit-learn, whose splits may change between versions.
    generator = np.random.Generator(np.random.PCG64(seed))
    taken = np.zeros(len(labels), dtype=bool)
    for label, count in enumerate(shares(np.bincount(labels), held_out)):
        members = np.flatnonzero(labels == label)
        # Ranking raw doubles depends on nothing but the bit generator, which numpy keeps stable.
        taken[members[np.argsort(generator.random(len(members)), kind="stable")[:count]]] = True
    return np.flatnonzero(~taken), np.flatnonzero(taken)


def shares(counts: np.ndarray, total: int) -> np.ndarray:
    """Split `total` in proportion to `counts` by largest remainders.

    >>> shares(np.array([50, 30, 21]), 10).tolist()
    [5, 3, 2]
    """
    exact = counts * total / counts.sum()
    whole = np.floor(exact).astype(int)
    largest = np.argsort(whole - exact, kind="stable")[: total - whole.sum()]
    whole[largest] += 1
    return whole
