"""Two processes with half of every batch each train as one process with the whole batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny

import ncttt
from ncttt import InputError
from ncttt.data import batches, load
from ncttt.training import processes, run

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def torchrun(count: int, *command: str) -> str:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    result = subprocess.run([*launch, *command], env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


def losses(count: int, moments: str) -> np.ndarray:
    """Cross-entropy and auxiliary loss of every step `(16, 2)`."""
    return np.array(json.loads(torchrun(count, str(HERE / "two_processes.py"), moments).splitlines()[-1]))[:, :2]


def test_two_processes_with_half_the_batch_give_the_loss_curve_of_one():
    one, two = losses(1, "synchronised"), losses(2, "synchronised")
    assert one.shape == (16, 2)
    assert one[-1, 0] < one[0, 0]
    np.testing.assert_allclose(two, one, atol=1e-6)
    # And the comparison can fail: with moments of each half the curve is another one.
    assert abs(losses(2, "apart") - one).max() > 1e-3


def test_the_command_trains_in_two_processes_and_one_writes(tmp_path):
    settings = ["--network_settings", "{width: 4}", "--layer", "layer2", "--threads", "1", "--recipe.epochs", "1"]
    command = ["-m", "ncttt", "train", "--data", "digits", "--out", str(tmp_path), *settings, "--json"]
    results = json.loads(torchrun(2, *command).splitlines()[-1])
    assert 0 < results["test_accuracy"] < 1
    assert json.loads((tmp_path / "environment.json").read_text())["processes"] == 2
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 2
    assert ncttt.load(tmp_path / "last").branch is not None
    torchrun(2, *command, "--resume")
    assert json.loads((tmp_path / "environment.json").read_text())["resumed"]


def test_only_the_first_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "place", lambda: processes.Place(1, 2))
    ncttt.train(tiny.model(), tiny.digits(64), epochs=1, batch_size=32, run=tmp_path / "run", observers=[])
    assert not (tmp_path / "run").exists()


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
