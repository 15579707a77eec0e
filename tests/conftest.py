"""Settings for all tests, and what several rooms share: a small checkpoint, a store, CIFAR-10 itself."""

import os
from pathlib import Path

import pytest
import torch

import ncttt.data
from ncttt.base.locks import locked

# The networks here are tiny: a second thread costs more than it brings, above all when other processes run.
torch.set_num_threads(1)

# Doctests are not looked for in this file, whose name tests/browser/conftest.py has taken by then, nor in programs that
# need what only `make fuzz` and `make test-browser` install.
collect_ignore = ["conftest.py", "fuzz/run.py"]
collect_ignore_glob = ["browser/take_*.py"]


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


@pytest.fixture(scope="session")
def cifar10_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that holds CIFAR-10: $NCTTT_DATA if it is set, else fetched once for all tests and their processes."""
    own = tmp_path_factory.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    root = Path(os.environ.get("NCTTT_DATA") or common / "root")
    with locked(common / "cifar10.lock"):
        ncttt.data.get("cifar10", root)
    return root
