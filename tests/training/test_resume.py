"""A training that is stopped, killed or fails goes on as if nothing had happened, and loses nothing it had."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny
import torch

import ncttt
from ncttt import InputError
from ncttt.data import load
from ncttt.training.epoch import held_out_metrics
from ncttt.training.run import read_facts

SETTINGS = {"epochs": 3, "batch_size": 32, "augment": "pad_crop_flip", "seed": 3}


def straight() -> ncttt.Branched:
    model = tiny.model()
    ncttt.train(model, tiny.digits(), observers=[], **SETTINGS)
    return model


@pytest.fixture
def listens():
    """Let Ctrl-C be heard, which the background job of a shell ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("step", [1, 5, 8, 14])
@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_stops_after_the_step_and_resuming_is_bit_exact(tmp_path, step, number, error, listens):
    stop = tiny.At(step, lambda: os.kill(os.getpid(), number))
    with pytest.raises(error):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[stop], **SETTINGS)
    facts = read_facts(tmp_path / "state.safetensors")
    assert len(facts["history"]) * 5 + facts["step"] == step
    resumed = tiny.model(seed=9)  # its weights must not matter
    history = ncttt.train(resumed, tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS)
    assert tiny.same_weights(resumed, straight())
    assert [epoch.number for epoch in history] == [1, 2, 3]
    assert all(epoch.images_per_second > 0 < epoch.seconds for epoch in history)
    assert tiny.same_weights(ncttt.load(tmp_path / "last"), resumed)
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


def test_the_epoch_that_was_stopped_is_measured_whole(tmp_path):
    whole = ncttt.train(tiny.model(), tiny.digits(), observers=[], **SETTINGS)
    stop = tiny.At(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[stop], **SETTINGS)
    parts = ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS)
    for one, two in zip(whole, parts, strict=True):
        assert (one.cross_entropy, one.auxiliary, one.accuracy) == (two.cross_entropy, two.auxiliary, two.accuracy)


@pytest.mark.parametrize("settings", [{"optimizer": "adamw", "lr": 1e-3}, {"schedule": "cosine", "nesterov": False}])
def test_resuming_is_bit_exact_whatever_the_optimizer(tmp_path, settings):
    expected, resumed = tiny.model(), tiny.model()
    ncttt.train(expected, tiny.digits(), observers=[], **SETTINGS, **settings)
    stop = tiny.At(6, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[stop], **SETTINGS, **settings)
    ncttt.train(resumed, tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS, **settings)
    assert tiny.same_weights(resumed, expected)


def test_a_run_of_an_older_version_goes_on_with_the_rates_it_began_with(tmp_path):
    expected, resumed = tiny.model(), tiny.model()
    ncttt.train(expected, tiny.digits(), observers=[], warmup_steps=0, **SETTINGS)
    stop = tiny.At(2, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[stop], warmup_steps=0, **SETTINGS)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["recipe"]["warmup_steps"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    ncttt.train(resumed, tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS)
    assert tiny.same_weights(resumed, expected)


def command(run: Path, *more: str) -> list[str]:
    settings = ["--network_settings", "{width: 4}", "--layer", "layer2", "--method_settings", "{hidden: 32}"]
    recipe = {"epochs": 16, "batch_size": 64, "lr": 0.05, "augment": "pad_crop_flip"}
    settings += ["--threads", "1", *(f"--recipe.{name}={value}" for name, value in recipe.items())]
    return [sys.executable, "-m", "ncttt", "train", "--data", "digits", "--out", str(run), *settings, *more]


def test_killed_five_times_at_random_moments_the_final_weights_are_the_same(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command(tmp_path / "straight"), check=True, **quiet)
    moments, metrics = random.Random(0), tmp_path / "killed" / "metrics.csv"
    for _ in range(5):
        seen = len(metrics.read_text().splitlines()) if metrics.exists() else 0
        process = subprocess.Popen(command(tmp_path / "killed", "--resume"), **quiet)
        deadline = time.monotonic() + 120
        while not (metrics.exists() and len(metrics.read_text().splitlines()) > seen):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        assert process.wait() == -signal.SIGKILL
    subprocess.run(command(tmp_path / "killed", "--resume"), check=True, **quiet)
    for name in ("last/model.safetensors", "last/model.json", "best/model.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    straight, killed = ((tmp_path / name / "metrics.csv").read_text().splitlines() for name in ("straight", "killed"))
    assert [without_speed(line) for line in straight] == [without_speed(line) for line in killed]


def without_speed(line: str) -> list[str]:
    cells = line.split(",")
    return cells[:5] + cells[7:]


def test_the_run_folder_says_what_was_run_and_what_came_out(tmp_path):
    model = tiny.model()
    with pytest.warns(UserWarning, match="the branch has learned nothing"):
        ncttt.train(
            model, tiny.digits(), run=tmp_path, held_out=load("digits", "val"), observers=[], warmup_steps=0, **SETTINGS
        )
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["recipe"]["epochs"] == 3
    assert config["model"]["method"]["hidden"] == 32
    assert "commit" in json.loads((tmp_path / "environment.json").read_text())
    rows = (tmp_path / "metrics.csv").read_text().splitlines()
    assert len(rows) == 4
    assert rows[0].startswith("epoch,lr,cross_entropy,auxiliary,accuracy,images_per_second,seconds,val_accuracy")
    assert "<svg" in (tmp_path / "curves.svg").read_text()
    assert tiny.same_weights(ncttt.load(tmp_path / "last"), model)
    best = ncttt.load(tmp_path / "best")
    assert best.branch.source_score[0] > 0


def test_best_is_the_epoch_with_the_highest_held_out_accuracy(tmp_path):
    val = load("digits", "val")
    # The rate explodes for the last epoch, so that the best model is an earlier one.
    settings = {
        **SETTINGS,
        "epochs": 4,
        "schedule": "multi_step",
        "milestones": [3],
        "gamma": 300.0,
        "lr": 0.02,
        "clip": 1.0,
    }
    with pytest.warns(UserWarning, match="the branch has learned nothing"):
        history = ncttt.train(tiny.model(), tiny.digits(960), run=tmp_path, held_out=val, observers=[], **settings)
    accuracies = [epoch.held_out["accuracy"] for epoch in history]
    assert max(accuracies) > accuracies[-1]
    best = held_out_metrics(ncttt.load(tmp_path / "best"), val, 32)["accuracy"]
    assert best == pytest.approx(max(accuracies))


def test_a_run_is_not_overwritten_and_not_resumed_with_other_settings(tmp_path):
    ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[], **SETTINGS)
    with pytest.raises(InputError, match="holds a training already"):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[], **SETTINGS)
    with pytest.raises(InputError, match=r"begun with recipe lr=0\.1; found 0\.2"):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS, lr=0.2)
    held_out = load("digits", "val")
    with pytest.raises(InputError, match="begun with data held_out=None; found 'digits val'"):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, resume=True, held_out=held_out, observers=[], **SETTINGS)
    with pytest.raises(InputError, match="begun with model method"):
        ncttt.train(tiny.model(views=2), tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS)


def test_a_loss_that_is_not_finite_stops_names_the_step_and_keeps_the_last_checkpoint(tmp_path):
    def poison(images: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return images * float("nan") if len(calls) == 8 else images

    calls: list[int] = []
    settings = {**SETTINGS, "augment": poison}
    with pytest.raises(InputError, match=r"the loss is nan at step 8, in epoch 2; the last good checkpoint is kept"):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[], **settings)
    assert len(read_facts(tmp_path / "state.safetensors")["history"]) == 1
    for kind in ("best", "last"):
        assert all(tensor.isfinite().all() for tensor in ncttt.load(tmp_path / kind).state_dict().values())


def test_weights_that_are_not_finite_never_replace_good_ones(tmp_path):
    class Poison(ncttt.training.Observer):
        def step(self, step: int, metrics: torch.Tensor, images: int) -> None:
            if step == 10:  # after the last step of the second epoch no loss is left to tell
                with torch.no_grad():
                    model.classifier.fc.bias.fill_(torch.inf)

    model = tiny.model()
    with pytest.raises(InputError, match="weights are not finite"):
        ncttt.train(model, tiny.digits(), run=tmp_path, observers=[Poison()], **SETTINGS)
    assert len(read_facts(tmp_path / "state.safetensors")["history"]) == 1


def test_a_full_disk_leaves_the_old_checkpoint_whole(tmp_path):
    def fill_disk() -> None:  # files cannot grow beyond this: what a full disk does, without filling one
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError, match="File too large"):
            ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[tiny.At(7, fill_disk)], **SETTINGS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(read_facts(tmp_path / "state.safetensors")["history"]) == 1
    assert not list(tmp_path.rglob(".*safetensors*"))
    ncttt.load(tmp_path / "best")
    resumed = tiny.model()
    ncttt.train(resumed, tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS)
    assert tiny.same_weights(resumed, straight())


def test_a_damaged_state_is_refused(tmp_path):
    ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, observers=[], **SETTINGS)
    (tmp_path / "state.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match="is no state of a training"):
        ncttt.train(tiny.model(), tiny.digits(), run=tmp_path, resume=True, observers=[], **SETTINGS)
