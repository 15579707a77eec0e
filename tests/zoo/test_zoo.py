"""The models that ship with the package: they load by name, say how they were made, and are as good as they say."""

import csv
import json
import math

import pytest
import torch

import ncttt
from ncttt import InputError, zoo
from ncttt.zoo.stored import description

MODELS = zoo.names()
METHODS = {"source": "source", "ncttt": "nc_ttt", "ttt": "ttt", "ttt-plus": "ttt_plus", "clust3": "clust3"}
METHODS |= {"ttt-flow": "ttt_flow", "ttt-mae": "ttt_mae", "start": "source"}
CIFAR10 = [name for name in MODELS if name.startswith("cifar10-small-")]
LEAST_ACCURACY = {"small": 0.92, "vit": 0.7}  # of the network; the transformer had one core for an hour
# What says, beside its loss, that a branch has learned: a figure, and the range it must lie in.
HEALTH = {
    "ncttt": ("in_out_accuracy", 0.75, 1.0),
    "ttt": ("rotation_accuracy", 0.5, 1.0),
    "ttt-plus": ("contrastive_accuracy", 0.2, 1.0),
    "clust3": ("mutual_information", 0.5, math.log(10)),
    "ttt-flow": ("bits_per_dimension", -10.0, 2.0),
    "ttt-mae": ("variance_explained", 0.2, 1.0),
}


def _short(name: str) -> str:
    """What a model is called behind its data and its network."""
    return name.split("-", 2)[2]


def results(name: str) -> dict:
    return json.loads((zoo.HOME / name / "results.json").read_text())


def test_the_promised_models_are_there():
    promised = {"cifar10-small-start", "cifar10-small-source", "cifar10-small-ncttt", "digits-small-ncttt"}
    assert set(MODELS) >= {*promised, "cifar10-vit-ttt-mae"}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_loads_by_name_and_adapts(name):
    model = ncttt.load(name)
    assert model.method.name == METHODS[_short(name)]
    assert ncttt.Adapter(model, steps=min(1, model.method.steps))(torch.rand(4, 3, 32, 32)).isfinite().all()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_says_how_it_was_made_and_how_good_it_is(name):
    config = json.loads((zoo.HOME / name / "config.json").read_text())
    environment = json.loads((zoo.HOME / name / "environment.json").read_text())
    assert config["recipe"]["seed"] == 0
    assert environment["commit"]
    with (zoo.HOME / name / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == config["recipe"]["epochs"]
    assert float(rows[-1]["val_accuracy"]) == pytest.approx(results(name)["held_out"]["accuracy"], abs=1e-5)
    assert results(name)["test_accuracy"] >= LEAST_ACCURACY[name.split("-")[1]]


@pytest.mark.parametrize("name", CIFAR10)
def test_a_model_is_at_most_half_a_point_worse_than_the_plain_one(name):
    plain = results("cifar10-small-source")["test_accuracy"]
    assert results(name)["test_accuracy"] >= plain - 0.005


@pytest.mark.parametrize("name", [name for name in CIFAR10 if not name.endswith("-start")])
def test_models_have_the_same_start_and_budget(name):
    config, plain = (
        json.loads((zoo.HOME / model / "config.json").read_text()) for model in (name, "cifar10-small-source")
    )
    start = "cifar10-small-source" if name.endswith("-ttt-flow") else "cifar10-small-start"
    assert (config["about"]["start"], config["about"]["start_weights"]) == (start, description(start)["weights_sha256"])
    joint = () if name.endswith("-ttt-flow") else ("optimizer", "lr", "weight_decay")  # the flow's classifier is frozen
    for setting in ("epochs", "batch_size", "schedule", "augment", *joint):
        assert config["recipe"][setting] == plain["recipe"][setting], setting


@pytest.mark.parametrize("name", MODELS)
def test_a_model_knows_how_certain_it_is_of_source_images(name):
    model = ncttt.load(name)
    assert model.source_certainty[0, 0] > 0.5
    level = model.method.source_level(model, 128)
    assert level is None or 0 < level < 1
    assert (level is None) == (model.method.name != "nc_ttt")


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("cifar10-") and _short(name) in HEALTH])
def test_a_branch_has_learned(name):
    figure, least, most = HEALTH[_short(name)]
    held_out = results(name)["held_out"]
    assert least < held_out[figure] < most
    assert ncttt.load(name).method.warnings(held_out) == []


def test_the_noise_branch_is_well_below_a_guess():
    held_out = results("cifar10-small-ncttt")["held_out"]
    assert held_out["bayes_floor"] < held_out["auxiliary"] < 0.9 * math.log(2)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_small_enough_to_ship(name):
    assert (zoo.HOME / name / "model.safetensors").stat().st_size < 12e6


def test_an_unknown_name_is_named_with_its_neighbours():
    with pytest.raises(InputError, match="did you mean 'cifar10-small-ncttt'"):
        ncttt.load("cifar10-small-nctt")
