"""The branch is watched: metrics that mean what they say, and warnings when adaptation cannot help."""

import math

import pytest
import tiny
import torch

import ncttt
from ncttt.data import load
from ncttt.training.epoch import held_out_metrics

HEALTHY = {"auxiliary": 0.4, "bayes_floor": 0.2, "spread": 1.0}


def metrics(model: ncttt.Branched) -> dict[str, float]:
    return held_out_metrics(model, load("digits", "val"), batch_size=64)


def test_means_do_not_depend_on_the_batches():
    model = ncttt.attach(ncttt.models.small(width=4), "layer2", ncttt.Source(), torch.rand(2, 3, 32, 32))
    small, large = (held_out_metrics(model, load("digits", "val"), size) for size in (7, 130))
    assert small == pytest.approx(large, rel=1e-5)


def test_two_looks_see_the_same_noise_and_leave_the_model_alone():
    model = tiny.model().train()
    assert metrics(model) == metrics(model)
    assert model.training


def test_the_floor_is_the_entropy_of_the_labels():
    certain = metrics(tiny.model(sigma_in=0.0))
    assert certain["bayes_floor"] == 0  # without inner noise every view is surely in or out
    assert certain["soft_label"] == 0.5
    assert metrics(tiny.model(sigma_in=0.999))["bayes_floor"] == pytest.approx(math.log(2), abs=1e-3)


def test_a_blind_discriminator_is_right_half_of_the_time_at_the_loss_of_a_guess():
    model = tiny.model()
    last = model.branch.heads[0].discriminator[-1]
    torch.nn.init.zeros_(last.weight), torch.nn.init.zeros_(last.bias)
    blind = metrics(model)
    assert blind["in_out_accuracy"] == 0.5
    assert blind["auxiliary"] == pytest.approx(math.log(2), abs=1e-6)
    assert "learned nothing" in model.method.warnings(blind)[0]


def test_a_constant_projection_has_collapsed():
    model = tiny.model(scaling="none")
    torch.nn.init.zeros_(model.branch.heads[0].projector.weight)
    constant = metrics(model)
    assert constant["spread"] == 0
    assert any("collapsed" in warning for warning in model.method.warnings(constant))


def test_a_healthy_branch_has_no_warning():
    assert ncttt.NCTTT().warnings(HEALTHY) == []


def test_an_ailing_branch_is_warned_of_once_half_way_and_once_at_the_end():
    val, settings = load("digits", "val"), {"epochs": 4, "branch_lr": 1e-9, "batch_size": 32, "observers": []}
    with pytest.warns(UserWarning, match="learned nothing") as caught:
        ncttt.train(tiny.model(), tiny.digits(64), held_out=val, **settings)
    texts = [str(warning.message) for warning in caught if "learned nothing" in str(warning.message)]
    assert [text.split(",")[0] for text in texts] == ["after epoch 2", "after epoch 4"]
