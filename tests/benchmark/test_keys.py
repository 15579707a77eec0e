"""Keys of cells stay what they are: rows that were measured once must be found again."""

import json
from pathlib import Path
from typing import Any

import pytest

from ncttt.benchmark import Cell, Entry, Grid, ImageDraw, Scenario, cells_of, read_rows
from ncttt.zoo.stored import description

RESULTS = Path(__file__).parents[2] / "results"
MODEL = "digits-small-ncttt"


def cell_of(row: dict[str, Any]) -> Cell:
    """The cell of a committed row, from its columns and the weights of the zoo."""
    scenario = Scenario(
        ImageDraw(row["data"], row["split"]), row["images_digest"], row["corruption"], row["severity"], row["constants"]
    )
    weights = description(row["checkpoint"])["weights_sha256"]
    assert weights.startswith(row["weights"])
    return Cell(
        scenarios=(scenario,),
        method=json.loads(row["settings"]),
        label=row["method"],
        checkpoint=row["checkpoint"],
        folder=row["checkpoint"],
        weights=weights,
        steps=tuple(map(int, json.loads(row["accuracy_at"]))),
        stop=float(row["stop"]) if row["stop"] not in (None, "source") else row["stop"],
        **{name: row[name] for name in ("protocol", "order", "batch_size", "seed", "threads", "device")},
    )


COMMITTED = {
    "cifar10c_severity5.csv": 864,
    "cifar10c_severity5.sqlite": 864,
    "cifar10c_iterations.csv": 48,
    "cifar10c_ttt_mae.csv": 32,
    "cifar10c_ttt_mae.sqlite": 32,
}


@pytest.mark.parametrize("name", COMMITTED)
def test_the_keys_of_committed_rows_follow_from_their_columns(name):
    rows = read_rows(RESULTS / name)
    assert len(rows) == COMMITTED[name]
    for row in rows:
        cell = cell_of(row)
        assert cell.key == row["key"]
        assert {column: row[column] for column in cell.columns()} == cell.columns()


# Literal keys, as they were when mixed streams were still a protocol of their own.
DIGITS = [
    ("source", ["episodic"], ["random"], "7220cdaf4641d9a4fdc7bc731130fc38"),
    ("nc_ttt", ["online"], ["by_class"], "ebed74787eb148774bd80e706da521da"),
    ("nc_ttt", ["continual"], ["dirichlet(0.1)"], "84868a4dbf4fc06b2b7c2bb3c0daf7df"),
    ("nc_ttt", ["continual"], ["mixed"], "41f3f61b90253b107bad4cffe04e3f6d"),
    ("nc_ttt", ["continual"], ["mixed(by_class)"], "8394bbe4382d2980a752ce5ea858dae2"),
    ("source", ["continual"], ["mixed(dirichlet(0.1))"], "c66bfffef0e0d542bed67c7dfdb07419"),
]


@pytest.mark.parametrize(("method", "protocols", "orders", "key"), DIGITS)
def test_keys_are_what_they_were(method, protocols, orders, key):
    entry = Entry(method=method, checkpoint=MODEL, steps=[0, 2] if method == "nc_ttt" else None)
    grid = Grid(data="digits", images=40, corruptions=["contrast", "fog"], severities=[3], constants="imagenet",
                batch_sizes=[20], protocols=protocols, orders=orders, methods=[entry])  # fmt: skip
    assert cells_of(grid)[0].key == key


def test_a_mixed_stream_in_another_protocol_is_another_cell():
    entry = Entry(method="source", checkpoint=MODEL)
    grid = Grid(data="digits", images=40, corruptions=["contrast", "fog"], methods=[entry],
                protocols=["episodic", "online", "continual"], orders=["mixed"])  # fmt: skip
    cells = cells_of(grid)
    assert [cell.identity()["protocol"] for cell in cells] == ["episodic", "online", "mixed"]
    assert len({cell.key for cell in cells}) == 3
