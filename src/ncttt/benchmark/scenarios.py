"""The images that methods are compared on: drawn and corrupted once, shared by the processes of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ncttt.base.errors import InputError
from ncttt.benchmark.draws import SEED, DrawnImages, ImageDraw, slices
from ncttt.benchmark.rows import was_read
from ncttt.benchmark.shared_arrays import Content, let_go, shared, whole
from ncttt.data import Images
from ncttt.data.corruptions import CLEAN, FORMAT, corrupt


@dataclass(frozen=True)
class Scenario:
    """A draw of images under one corruption at one severity.

    `digest` is that of the clean images, `constants` the name of a table of severities. Where the corrupted images lay
    ready, `digest` is their own, and `constants` says who made them.
    """

    draw: ImageDraw
    digest: str
    corruption: str = CLEAN
    severity: int = 0
    constants: str | None = None

    @property
    def name(self) -> str:
        """What the images are, whatever their set is called."""
        name = f"{self.digest}-{self.corruption}-{self.severity}-{self.constants}"
        return name if was_read(self.constants) else f"{name}-{FORMAT}"  # our code did not corrupt what was read

    @property
    def clean(self) -> Scenario:
        """The same images without a corruption."""
        return Scenario(self.draw, self.digest)

    @property
    def decodes(self) -> bool:
        """Whether the images come from image files, which are decoded once and corrupted from there."""
        return self.draw.image_size is not None

    def images(self, cache: Path) -> np.ndarray:
        """The images uint8 (N, H, W, 3), a memory map of a file that the first process to ask has made."""
        return shared(self.images_file(cache), lambda: self._content(cache))

    def labels(self, cache: Path) -> np.ndarray:
        """The label of each image, int64 (N,)."""
        return shared(self.labels_file(cache), lambda: whole(self._drawn().labels))

    def places(self, cache: Path) -> np.ndarray:
        """The place of each image in its set, int64 (N,), on which a random corruption depends."""
        return shared(cache / f"{self.digest}-places.npy", lambda: whole(self._drawn().places))

    def images_file(self, cache: Path) -> Path:
        """Where the images are kept."""
        return cache / f"{self.name}.npy"

    def labels_file(self, cache: Path) -> Path:
        """Where the labels are kept; all corruptions of a draw share them."""
        return cache / f"{self.digest}-labels.npy"

    def _drawn(self) -> DrawnImages:
        drawn = self.draw.read()
        if drawn.digest != self.digest:
            raise InputError(f"the images of {self.draw.data} here are not those that the grid was made for")
        return drawn

    def _content(self, cache: Path) -> Content:
        if self.corruption == CLEAN or was_read(self.constants):
            drawn = self.draw.read()
            return drawn.images.shape, np.uint8, drawn.pieces(self.digest)
        if self.decodes:
            images: Images = self.clean.images(cache)
            places = self.places(cache)
        else:
            images, places = self._drawn().images, self._drawn().places
        return images.shape, np.uint8, self._corrupted(images, places)

    def _corrupted(self, images: Images, places: np.ndarray) -> Iterator[np.ndarray]:
        options = {"seed": SEED, "constants": self.constants}
        for part in slices(images.shape):
            piece = np.asarray(images[part])
            yield corrupt(piece, self.corruption, self.severity, indices=places[part], **options)
            if isinstance(images, np.ndarray):
                let_go(images)


def decode_files(scenarios: Iterable[Scenario], cache: Path, say: Callable[[str], None]) -> None:
    """Decode the image files of these scenarios now, so that a file that cannot be read is told before all else.

    Labels and places are kept beside them, so that nobody has to look at the files again.
    """
    for scenario in dict.fromkeys(scenario.clean for scenario in scenarios if scenario.decodes):
        if not scenario.images_file(cache).exists():
            say(f"decoding the image files of {scenario.draw.data}, once for all cells")
        for make in (scenario.images, scenario.labels, scenario.places):
            make(cache)
