"""Methods that need facts of the source, but no training, in grids: on any checkpoint, calibrated and keyed."""

import json
from dataclasses import replace

import pytest
import torch

import ncttt
import small_grid
from ncttt.benchmark import ImageDraw, cells_of
from ncttt.benchmark.calibration import MOST, _clean_set, calibration_for
from ncttt.benchmark.grid import Entry
from ncttt.benchmark.measure import measure
from ncttt.data import batches, load
from ncttt.data.planning import planned_batches
from ncttt.methods import METHODS

EATA = {"method": "eata", "settings": {"margin": 1.0, "alpha": 50.0}}


def cell(checkpoint: str, **changes):
    entry = Entry(checkpoint=checkpoint, **EATA)
    return cells_of(small_grid.grid(checkpoint, methods=[entry], protocols=["online"], **changes))[0]


def test_eata_runs_on_a_checkpoint_of_another_method_as_a_plain_loop_does(checkpoint, tmp_path):
    one = cell(checkpoint)
    result = measure(one, tmp_path)
    method = ncttt.EATA(**EATA["settings"])
    model = ncttt.calibrated(ncttt.load(checkpoint), method, list(batches(load("digits", "val"), 128)))
    assert model.branch.diagonal.max() > 0
    adapter = ncttt.Adapter(model, protocol="online")
    images = one.scenarios[0].images(tmp_path)
    labels = one.scenarios[0].labels(tmp_path)
    rows = []
    for _, places in planned_batches([labels], one.order, one.batch_size, one.seed):
        rows.append(adapter(torch.from_numpy(images[places]).permute(0, 3, 1, 2).float().div(255)).argmax(1))
    assert torch.equal(torch.cat(rows), torch.from_numpy(result.predicted[-1]))


def test_rows_say_and_keys_know_what_it_was_calibrated_on(checkpoint):
    one = cell(checkpoint)
    assert one.calibration is not None
    told = json.loads(one.columns()["settings"])["calibrated_on"]
    assert told == f"digits val {one.calibration.digest}"
    other = replace(one, calibration=replace(one.calibration, digest="0" * 16))
    assert other.key != one.key
    assert replace(one, calibration=None).key != one.key
    tent = cells_of(small_grid.grid(checkpoint, methods=[Entry(method="tent", checkpoint=checkpoint)]))[0]
    assert tent.calibration is None
    assert "calibration" not in tent.identity()
    assert "calibrated_on" not in tent.columns()["settings"]


def test_where_the_source_images_come_from():
    draw = ImageDraw("digits", "test")
    source = calibration_for(METHODS["eata"], draw)
    assert source is not None
    assert (source.draw.data, source.draw.split, source.corruption) == ("digits", "val", "clean")
    on_val = calibration_for(METHODS["eata"], replace(draw, split="val"))
    assert on_val is not None
    assert (on_val.draw.split, on_val.draw.count) == ("fit", None if len(load("digits", "fit")) <= MOST else MOST)
    for name in ("cifar10-c", "cifar10.1-v6", "cifar10"):
        assert _clean_set(ImageDraw(name, "test"), "val") == "cifar10"
    for name in ("tent", "nc_ttt"):
        assert calibration_for(METHODS[name], draw) is None


def test_a_set_without_held_out_images_is_one_error(tmp_path):
    with pytest.raises(
        ncttt.InputError, match="eata needs the Fisher matrix of the source, measured on the split 'val'"
    ):
        calibration_for(METHODS["eata"], ImageDraw("cifar10", "test", root=str(tmp_path)))
