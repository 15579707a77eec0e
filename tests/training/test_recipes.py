"""Recipes: what they refuse, what their schedules give, and that the shipped configurations run."""

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import ncttt
from ncttt import InputError, Recipe, configs, models
from ncttt.base.optimizers import OPTIMIZERS, make_optimizer
from ncttt.methods.settings import method_from
from ncttt.training import Job, read_job
from ncttt.training.recipe import AUGMENTATIONS, PRECISIONS
from ncttt.training.schedules import SCHEDULES, factor, highest_rate
from ncttt.training.stepping import Stepper, augmentation

TRAININGS = sorted((configs.HOME / "train").glob("*.yaml"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0.0}, "lr must be positive; found 0.0"),
        ({"weight_decay": -1.0}, "weight_decay must be finite and not negative; found -1.0"),
        ({"lr": float("nan")}, "lr must be positive; found nan"),
        ({"label_smoothing": 1.0}, "label_smoothing must be below 1; found 1.0"),
        ({"auxiliary_weight": -1.0}, "auxiliary_weight must be finite and not negative; found -1.0"),
        ({"clip": 0.0}, "clip must be positive, or none; found 0.0"),
        ({"schedule": "cosin"}, "no schedule 'cosin'; did you mean 'cosine'"),
        ({"branch": "alone"}, "no branch 'alone'; there are: joint, only"),
        ({"augment": "crop"}, "no augment 'crop'"),
        ({"precision": "float8"}, "no precision 'float8'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError) as error:
        Recipe(**settings)
    assert message in str(error.value)


def test_names_stand_for_what_exists():
    images = torch.rand(2, 3, 224, 224)
    assert all(augmentation(name)(images).shape == images.shape for name in AUGMENTATIONS)
    assert augmentation("none")(images) is images
    assert all(isinstance(getattr(torch, name), torch.dtype) for name in PRECISIONS)
    for name in OPTIMIZERS:
        made = make_optimizer(name, [torch.nn.Parameter(torch.zeros(1))], 0.25, weight_decay=0.5)
        assert type(made).__name__.lower() == name
        assert (made.defaults["lr"], made.defaults["weight_decay"]) == (0.25, 0.5)


def test_a_constant_rate_is_constant():
    recipe = Recipe(schedule="constant")
    assert {factor(recipe, progress) for progress in (0.0, 0.3, 1.0)} == {1.0}


@pytest.mark.parametrize("name", sorted(SCHEDULES.keys() - {"constant"}))
def test_schedules_follow_torch(name):
    """Against torch's own schedulers, at the middle of every step."""
    epochs, per_epoch = 20, 5
    steps = epochs * per_epoch
    recipe = Recipe(epochs=epochs, schedule=name, milestones=(8, 15), gamma=0.2, warmup=0.25)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedulers = torch.optim.lr_scheduler
    fine = 2 * steps  # half steps, because ours looks at the middle of a step
    theirs = {
        "multi_step": lambda: schedulers.MultiStepLR(optimizer, [8 * per_epoch * 2, 15 * per_epoch * 2], 0.2),
        "cosine": lambda: schedulers.CosineAnnealingLR(optimizer, fine),
        "one_cycle": lambda: schedulers.SequentialLR(
            optimizer,
            [
                schedulers.LambdaLR(optimizer, lambda step: step / (fine / 4)),
                schedulers.CosineAnnealingLR(optimizer, fine * 3 // 4),
            ],
            [fine // 4],
        ),
    }[name]()
    expected = []
    for half in range(fine):
        if half % 2:
            expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()
    np.testing.assert_allclose([factor(recipe, (k + 0.5) / steps) for k in range(steps)], expected, atol=1e-6)


def test_the_highest_rate_of_a_short_training_is_lower():
    rates = [highest_rate(Recipe(lr=0.1), steps) for steps in (10, 50, 90, 250, 10_000)]
    assert rates == pytest.approx([0.1 * (share / 50) ** 1.5 for share in (2, 10, 18, 50)] + [0.1])
    for other in (Recipe(lr=0.1, warmup_steps=0), Recipe(lr=0.1, schedule="cosine")):
        assert highest_rate(other, 10) == 0.1


# How many images the sets of the committed configurations have to learn from.
LEARNED = {"digits": 1167, "cifar10": 45_000}


@pytest.mark.parametrize("path", TRAININGS, ids=lambda path: path.stem)
def test_committed_configurations_keep_their_rates(path):
    """Their models were trained before there was a limit for short trainings, which therefore must not touch them."""
    job = read_job(path)
    steps = LEARNED[job.data] // job.recipe.batch_size * job.recipe.epochs
    assert highest_rate(job.recipe, steps) == job.recipe.lr


def test_the_rate_of_a_step_is_what_the_optimizer_gets():
    model = ncttt.attach(ncttt.models.small(width=4), "layer2", ncttt.NCTTT(), torch.rand(2, 3, 32, 32)).train()
    recipe = Recipe(epochs=4, schedule="multi_step", milestones=(2,), lr=0.1, branch_lr=0.01)
    stepper = Stepper(model, recipe, steps_per_epoch=3)
    stepper.prepare()
    for number, rates in ((5, (0.1, 0.01)), (6, (0.01, 0.001))):
        stepper.step(number, torch.rand(4, 3, 32, 32), torch.randint(10, (4,)))
        assert [o.param_groups[0]["lr"] for o in stepper.optimizers] == pytest.approx(rates)
        assert stepper.rate(number) == pytest.approx(rates[0])


def plain_job(path: Path) -> Job:
    """A configuration by plain YAML, in which 5e-4 would be a text."""
    settings = yaml.safe_load(path.read_text())
    for name in ("out", "threads"):
        settings.pop(name, None)
    return Job(**(settings | {"recipe": Recipe(**settings["recipe"])}))


@pytest.mark.parametrize("path", TRAININGS, ids=lambda path: path.stem)
def test_every_configuration_is_understood(path):
    wanted = read_job(path)
    assert wanted == plain_job(path)
    assert method_from({"name": wanted.method, **wanted.method_settings}).name == wanted.method
    net = models.build(wanted.network, **wanted.network_settings)
    layers = [wanted.layer] if isinstance(wanted.layer, str) else wanted.layer
    assert all(net.get_submodule(layer) for layer in layers)
