"""The grids that a page shows: measured again, they give the same cells."""

import json

import pytest
import yaml

from ncttt.benchmark import Entry, Grid, cells_of
from ncttt.report.page.repeat import grids_of

MODEL = "digits-small-ncttt"
METHODS = [
    {"method": "source", "checkpoint": MODEL},
    {"method": "tent", "checkpoint": MODEL, "settings": {"lr": 0.01}, "protocols": ["episodic"]},
    {"method": "nc_ttt", "checkpoint": MODEL, "steps": [0, 2, 5]},
    {"method": "nc_ttt", "checkpoint": MODEL, "stop": "source", "label": "that stops"},
]


@pytest.mark.parametrize("protocols", [["episodic", "online"], ["episodic", "continual"], ["mixed", "episodic"]])
def test_the_grid_of_rows_has_their_cells(protocols):
    asked = {"data": "digits", "images": 40, "corruptions": ["clean", "contrast", "fog"], "severities": [3, 5]}
    asked |= {"constants": "imagenet", "protocols": protocols, "batch_sizes": [20], "seeds": [0, 1]}
    cells = cells_of(_grid(asked | {"methods": METHODS}))
    (text,) = grids_of([_row(cell) for cell in cells])
    assert {cell.key for cell in cells_of(_grid(yaml.safe_load(text)))} == {cell.key for cell in cells}


def _grid(asked: dict) -> Grid:
    return Grid(**asked | {"methods": [Entry(**entry) for entry in asked["methods"]]})


def _row(cell) -> dict:
    parts = len(cell.scenes) if cell.protocol == "continual" else 1
    counts = json.dumps({str(count): 0.5 for count in cell.steps})
    return {"key": cell.key, **cell.columns(), "images": 40 * parts, "accuracy": 0.5, "accuracy_at": counts}
