"""A grid on a Dataset of PyTorch, which is named by its address."""

from ncttt.benchmark import Entry, Grid, Store, run_grid

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
