"""The one fair shuffle: of training batches, of draws of images and of streams."""

import numpy as np


def shuffled(count: int, seed: int, epoch: int) -> np.ndarray:
    """The numbers 0 .. count - 1 in an order that depends on (seed, epoch) only.

    >>> sorted(shuffled(4, seed=1, epoch=0).tolist())
    [0, 1, 2, 3]
    """
    generator = np.random.Generator(np.random.PCG64([seed, epoch]))
    return np.argsort(generator.random(count), kind="stable")
