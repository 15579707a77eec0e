"""Random numbers that belong to an image: they depend on (seed, corruption, severity, index, number of the draw) only.

Each row of a draw comes from a stream of its own, started from a hash of those five. Batch size, order and worker count
therefore cannot matter. One generator object is re-seated per row because making a new one costs ten times as much.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray


class Draws:
    """Random arrays `(N, *shape)` whose row n depends on image n alone; each call is a new, independent draw.

    >>> both = Draws(0, "fog", 5, [3, 7]).uniform(-1, 1, (4,))
    >>> alone = Draws(0, "fog", 5, [7]).uniform(-1, 1, (4,))
    >>> np.array_equal(both[1], alone[0])
    True
    """

    def __init__(self, seed: int, corruption: str, severity: int, indices: Sequence[int] | Array):
        self._key = hashlib.sha256(f"{seed}/{corruption}/{severity}".encode()).digest()
        self._indices = [int(index) for index in indices]
        self._bits = np.random.SFC64(0)
        self._generator = np.random.Generator(self._bits)
        self._calls = 0

    def __len__(self) -> int:
        return len(self._indices)

    def normal(self, shape: tuple[int, ...]) -> Array:
        """Standard normal numbers, float32."""
        rows = np.empty((len(self), *shape), np.float32)
        self._fill(rows, lambda row: self._generator.standard_normal(dtype=np.float32, out=row))
        return rows

    def uniform(self, low: float, high: float, shape: tuple[int, ...] = ()) -> Array:
        """Numbers uniform in [low, high), float64."""
        rows = np.empty((len(self), *(shape or (1,))), np.float64)
        self._fill(rows, lambda row: self._generator.random(out=row))
        rows *= high - low
        rows += low
        return rows if shape else rows[:, 0]

    def words(self, shape: tuple[int, ...]) -> Array:
        """Uniform 32-bit words, uint32."""
        rows = np.empty((len(self), *shape), np.uint32)
        count = rows[0].size if len(rows) else 0
        for row, generator in zip(rows, self._streams(), strict=True):
            row[...] = np.frombuffer(generator.bytes(4 * count), np.uint32).reshape(shape)
        return rows

    def integers(self, low: int, high: int, shape: tuple[int, ...] = ()) -> Array:
        """Integers uniform in low, ..., high - 1, int32."""
        rows = np.empty((len(self), *shape), np.int32)
        for n, generator in enumerate(self._streams()):
            rows[n] = generator.integers(low, high, size=shape, dtype=np.int32)
        return rows

    def _fill(self, rows: Array, fill: Callable[[Array], Any]) -> None:
        for row, _ in zip(rows, self._streams(), strict=True):
            fill(row)

    def _streams(self):
        """The generator, seated at the start of each image's stream in turn."""
        call, self._calls = self._calls, self._calls + 1
        state: Any = {"bit_generator": "SFC64", "has_uint32": 0, "uinteger": 0}
        for index in self._indices:
            name = index.to_bytes(8, "little") + call.to_bytes(4, "little")
            digest = hashlib.blake2b(name, key=self._key, digest_size=32).digest()
            state["state"] = {"state": np.frombuffer(digest, np.uint64)}
            self._bits.state = state
            yield self._generator
