"""`ncttt train`, as a user meets it: in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import ncttt

TINY = {
    "data": "digits",
    "network_settings": {"width": 4},
    "layer": "layer2",
    "method_settings": {"hidden": 32},
    "recipe": {"epochs": 2, "batch_size": 64, "lr": 0.02, "auxiliary_weight": 1.0},
    "threads": 1,
}


def write(folder: Path, **changes: object) -> str:
    path = folder / "config.yaml"
    path.write_text(json.dumps(TINY | {"out": str(folder / "run")} | changes))  # JSON is YAML
    return str(path)


def train(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ncttt", "train", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_a_configuration_with_overrides_trains_scores_and_says_so(tmp_path):
    done = train("--config", write(tmp_path), "--recipe.epochs", "1", "--json")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results == json.loads((tmp_path / "run/results.json").read_text())
    assert results["epochs"] == 1
    assert 0 <= results["test_accuracy"] <= 1
    assert "epoch 1/1: loss" in done.stderr
    assert "left" in done.stderr
    assert ncttt.load(tmp_path / "run/last").method == ncttt.NCTTT(hidden=32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"netwrk": "small"}, "'netwrk'; did you mean 'network'?"),
        ({"recipe": {"epocs": 2}}, "'recipe.epocs'; did you mean 'recipe.epochs'"),
        ({"recipe": {"epochs": 0}}, "epochs must be positive; found 0"),
        ({"network": "smal"}, "no network 'smal'; did you mean 'small'?"),
        ({"network_settings": {"widht": 3}}, "network 'small' has no setting 'widht'; did you mean 'width'?"),
        ({"method": "nc_tt"}, "no method 'nc_tt'; did you mean 'nc_ttt'"),
        ({"method_settings": {"hiden": 3}}, "method 'nc_ttt' has no setting 'hiden'; did you mean 'hidden'?"),
        ({"layer": "layr2"}, "no layer 'layr2' in ResNet9; did you mean 'layer2'"),
        ({"network_settings": {"num_classes": 7, "width": 4}}, "the classifier has 7 classes, but digits fit has 10"),
        ({"data": "cifar11"}, "cifar11"),
        ({"start": "nowhere/weights.pth"}, "nowhere/weights.pth does not exist"),
        ({"device": "cuda:9"}, "cuda:9"),
    ],
)
def test_what_the_user_did_wrong_is_one_clear_line_and_code_2(tmp_path, changes, message):
    done = train("--config", write(tmp_path, **changes))
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run/state.safetensors").exists()


def test_a_start_of_another_architecture_is_refused(tmp_path):
    torch.save(ncttt.models.small(width=8).state_dict(), tmp_path / "wide.pth")
    done = train("--config", write(tmp_path, start=str(tmp_path / "wide.pth")))
    assert done.returncode == 2
    assert "wide.pth is of another architecture" in done.stderr


def test_sigterm_leaves_a_run_that_resumes(tmp_path):
    config = write(tmp_path, recipe=TINY["recipe"] | {"epochs": 10})
    command = [sys.executable, "-m", "ncttt", "train", "--config", config]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while not (tmp_path / "run/metrics.csv").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "stopped; go on with --resume" in errors
    assert "Traceback" not in errors
    done = train("--config", config, "--resume")
    assert done.returncode == 0, done.stderr
    assert "epoch 10/10" in done.stderr
    assert "epoch 1/10" not in done.stderr
