"""A grid on a Dataset of PyTorch, which is named by its address."""

import pytest
from PIL import Image

from ncttt import InputError
from ncttt.benchmark import Entry, Grid, Store, cells_of, run_grid

MODULE = """
import ncttt
from torch.utils.data import Dataset

class Floats(Dataset):
    def __init__(self, split):
        self.data = ncttt.data.load("digits", split)
    def __len__(self):
        return len(self.data)
    def __getitem__(self, index):
        return self.data[index]

test_part = Floats("test")
def by_split(split):
    return Floats(split)

class Images(Floats):
    def __getitem__(self, index):
        return self.data[index][0]

without_labels = Images("test")
"""


def test_a_dataset_gives_the_rows_of_the_same_images(tmp_path, monkeypatch):
    (tmp_path / "floats_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    methods = [Entry(method="source", checkpoint="digits-small-ncttt")]
    found = {}
    for data in ("digits", "floats_of_a_test:test_part", "floats_of_a_test:by_split"):
        grid = Grid(data=data, methods=methods, images=60, corruptions=["clean", "contrast"], batch_sizes=[30])
        rows = run_grid(grid, Store(tmp_path / f"{len(found)}.sqlite"), executor="here", progress=False).rows
        found[data] = {row["corruption"]: (row["accuracy"], row["nll"]) for row in rows}
    assert len(found["digits"]) == 2
    assert all(rows == found["digits"] for rows in found.values())


@pytest.mark.parametrize("order", ["random", "by_class", "dirichlet(0.1)", "mixed(by_class)"])
def test_a_grid_needs_labels_in_every_order(tmp_path, monkeypatch, order):
    (tmp_path / "images_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loose").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "loose" / "one.png")
    entry = Entry(method="source", checkpoint="digits-small-ncttt")
    for data, split, why in (
        ("images_of_a_test:without_labels", "test", "has no labels, which a grid needs"),
        (str(tmp_path / "loose"), "all", "loose holds 1 image without labels; expected <class>/<image>"),
    ):
        with pytest.raises(InputError, match=why):
            cells_of(Grid(data=data, split=split, methods=[entry], orders=[order], protocols=["continual"]))
