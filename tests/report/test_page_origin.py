"""Where rows come from: the grids that a page shows, measured again, give the same cells."""

import json

import pytest
import yaml
from report_rows import row

from ncttt.benchmark import Entry, Grid, cells_of
from ncttt.report.page.origin import grids_of

MODEL = "digits-small-ncttt"
METHODS = [
    {"method": "source", "checkpoint": MODEL},
    {"method": "tent", "checkpoint": MODEL, "settings": {"lr": 0.01}, "protocols": ["episodic"]},
    {"method": "nc_ttt", "checkpoint": MODEL, "steps": [0, 2, 5]},
    {"method": "nc_ttt", "checkpoint": MODEL, "stop": "source", "label": "that stops"},
]


@pytest.mark.parametrize(
    ("protocols", "order"),
    [
        (["episodic", "online"], "random"),
        (["episodic", "continual"], "random"),
        (["continual", "episodic"], "mixed"),
        (["online"], "mixed(by_class)"),
    ],
)
def test_the_grid_of_rows_has_their_cells(protocols, order):
    asked = {"data": "digits", "images": 40, "corruptions": ["clean", "contrast", "fog"], "severities": [3, 5]}
    asked |= {"constants": "imagenet", "protocols": protocols, "orders": [order], "batch_sizes": [20], "seeds": [0, 1]}
    cells = cells_of(_grid(asked | {"methods": METHODS}))
    grids = [_grid(yaml.safe_load(text)) for text in grids_of([_row(cell) for cell in cells])]
    assert {cell.key for grid in grids for cell in cells_of(grid)} == {cell.key for cell in cells}


def test_a_mixed_order_has_a_grid_of_its_own_for_not_every_protocol_goes_with_it():
    alone = [row("tent", name, 0.5, images=40) for name in ("fog", "snow")]
    mixed = row("tent", "fog+snow", 0.5, protocol="continual", order="mixed", images=40)
    first, second = (yaml.safe_load(text) for text in grids_of([*alone, mixed]))
    assert (first["protocols"], first["orders"], first["images"]) == (["episodic"], ["random"], 40)
    assert (second["protocols"], second["orders"], second["images"]) == (["continual"], ["mixed"], 40)
    assert second["corruptions"] == ["fog", "snow"]


def test_mixed_streams_have_a_grid_of_their_own():
    asked = {"data": "digits", "images": 40, "corruptions": ["contrast", "fog"], "batch_sizes": [20]}
    asked["methods"] = METHODS[:1]
    setups = [{"protocols": ["episodic"]}, {"protocols": ["continual"], "orders": ["mixed"]}]
    cells = [cell for setup in setups for cell in cells_of(_grid(asked | setup))]
    texts = grids_of([_row(cell) for cell in cells])
    assert {c.key for text in texts for c in cells_of(_grid(yaml.safe_load(text)))} == {cell.key for cell in cells}


@pytest.mark.parametrize("sequence", ["gradual", "visits(2)+clean_every(3)"])
def test_sequences_of_domains_have_a_grid_of_their_own(sequence):
    asked = {"data": "digits", "images": 40, "corruptions": ["contrast", "fog"], "severities": [3], "batch_sizes": [20]}
    asked |= {"methods": METHODS[:2], "protocols": ["episodic", "online"], "sequences": ["once", sequence]}
    cells = cells_of(_grid(asked | {"methods": METHODS[:1]}))
    texts = grids_of([_row(cell) for cell in cells])
    assert {c.key for text in texts for c in cells_of(_grid(yaml.safe_load(text)))} == {cell.key for cell in cells}


def _grid(asked: dict) -> Grid:
    return Grid(**asked | {"methods": [Entry(**entry) for entry in asked["methods"]]})


def _row(cell) -> dict:
    parts = 1 if cell.mixed else len(cell.scenarios)
    counts = json.dumps({str(count): 0.5 for count in cell.steps})
    return {"key": cell.key, **cell.columns(), "images": 40 * parts, "accuracy": 0.5, "accuracy_at": counts}
