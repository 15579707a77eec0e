"""One small trained checkpoint for all tests of the benchmark."""

import pytest
import small_grid

from ncttt.benchmark import Store


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory) -> str:
    return small_grid.make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "small")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "rows.sqlite") as store:
        yield store
