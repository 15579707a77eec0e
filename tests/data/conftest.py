"""What the tests of the data sets share: the folder beside the project, small files to read."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from local_server import Server


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared"
    if not folder.is_dir():
        pytest.skip("no shared folder beside the project")
    return folder


@pytest.fixture
def pictures() -> Callable[..., np.ndarray]:
    def make(count: int, size: int = 32, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, 256, (count, size, size, 3), dtype=np.uint8)

    return make


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    """Folder with classes `cat` (three images) and `dog` (two), 40 x 30 pixels, colours by class and number."""
    for name, red in (("cat", 50), ("dog", 200)):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(3 if name == "cat" else 2):
            picture = Image.new("RGB", (40, 30), (red, 10 * number, 0))
            picture.save(tmp_path / "pets" / name / f"{number}.png")
    return tmp_path / "pets"


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()
