"""Two processes with half of every batch each train as one process with the whole batch."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ncttt
from ncttt import InputError
from ncttt.data import batches, load
from ncttt.training import processes

RECIPE = "--recipe.epochs 4 --recipe.batch_size 64 --recipe.lr 0.02 --recipe.auxiliary_weight 1 --recipe.synchronise"


def train(run: Path, count: int, *more: str) -> list[dict[str, float]]:
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"] if count > 1 else []
    settings = ["--data", "digits", "--network_settings", "{width: 4}", "--layer", "layer2", "--threads", "1"]
    command = [sys.executable, *launch, "-m", "ncttt", "train", "--out", str(run), *settings, *RECIPE.split(), *more]
    result = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    with (run / "metrics.csv").open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def test_two_processes_give_the_loss_curve_of_one(tmp_path):
    one, two = train(tmp_path / "one", 1), train(tmp_path / "two", 2)
    assert one[-1]["cross_entropy"] < one[0]["cross_entropy"]
    for name in ("cross_entropy", "auxiliary", "val_cross_entropy", "val_auxiliary"):
        np.testing.assert_allclose([row[name] for row in two], [row[name] for row in one], atol=1e-4)
    first, second = (ncttt.load(tmp_path / name / "last").state_dict() for name in ("one", "two"))
    for name, tensor in first.items():
        np.testing.assert_allclose(second[name], tensor, atol=2e-3, err_msg=name)


def test_without_synchronisation_the_moments_differ(tmp_path):
    """Shows that the comparison above can fail."""
    one = train(tmp_path / "one", 1, "--recipe.epochs", "1")
    two = train(tmp_path / "two", 2, "--recipe.epochs", "1", "--recipe.synchronise=false")
    assert abs(one[0]["cross_entropy"] - two[0]["cross_entropy"]) > 1e-3


def test_processes_share_no_sample_and_miss_none():
    data = load("digits", "fit")
    shares = [batches(data, 32, shuffle=True, seed=1, epoch=2, drop_last=True, rank=r, world=2).order for r in (0, 1)]
    whole = batches(data, 64, shuffle=True, seed=1, epoch=2, drop_last=True).order
    assert [len(share) for share in shares] == [len(whole)] * 2
    for first, second, both in zip(*shares, whole, strict=True):
        assert set(first).isdisjoint(second)
        assert {*first, *second} == set(both)


def test_a_batch_that_cannot_be_shared_equally_is_refused(monkeypatch):
    monkeypatch.setattr(processes, "place", lambda: processes.Place(0, 3))
    with pytest.raises(InputError, match="a batch of 64 images cannot be shared equally by 3 processes"):
        processes.share_of_batch(64)
