"""Settings for all tests, and what the tests of the benchmark share."""

import pytest
import torch

# The networks here are tiny: a second thread costs more than it brings, above all when other processes run.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory) -> str:
    """The folder of a small model that has seen some digits."""
    import small_grid

    return small_grid.make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "small")


@pytest.fixture
def store(tmp_path):
    """An empty store of rows."""
    from ncttt.benchmark import Store

    with Store(tmp_path / "rows.sqlite") as store:
        yield store
