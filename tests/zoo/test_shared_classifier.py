"""A model of the zoo whose classifier another one has: stored once, read whole."""

import json
import shutil

import pytest
import torch

import ncttt
from ncttt import InputError
from ncttt.zoo import shipped, stored
from ncttt.zoo.shipped import HOME
from ncttt.zoo.stored import share_classifier

FLOW, SOURCE = "cifar10-small-ttt-flow", "cifar10-small-source"


def test_nothing_of_the_zoo_is_stored_twice():
    sizes = {path.parent.name: path.stat().st_size for path in HOME.glob("*/model.safetensors")}
    assert sizes[FLOW] < sizes[SOURCE] / 10
    assert sum(sizes.values()) < 35e6


def test_the_model_is_whole_and_its_classifier_that_of_the_other():
    flow, source = ncttt.load(FLOW), ncttt.load(SOURCE)
    shared = source.classifier.state_dict()
    assert all(torch.equal(tensor, shared[name]) for name, tensor in flow.classifier.state_dict().items())
    assert flow.branch is not None


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A zoo of its own that holds the source model."""
    shutil.copytree(HOME / SOURCE, tmp_path / SOURCE)
    for module in (stored, shipped):
        monkeypatch.setattr(module, "HOME", tmp_path)
    return tmp_path


def test_sharing_and_reading_again_changes_nothing(zoo):
    model = ncttt.load(HOME / SOURCE)
    ncttt.save(model, zoo / "other")
    digest = json.loads((zoo / "other/model.json").read_text())["weights_sha256"]
    share_classifier(zoo / "other", SOURCE)
    assert json.loads((zoo / "other/model.json").read_text())["weights_sha256"] == digest
    after = ncttt.load("other").state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in model.state_dict().items())


def test_another_classifier_is_not_shared(zoo):
    model = ncttt.load(HOME / SOURCE)
    next(model.classifier.parameters()).data += 1
    ncttt.save(model, zoo / "other")
    with pytest.raises(InputError, match="has another classifier than"):
        share_classifier(zoo / "other", SOURCE)
    assert "classifier_of" not in json.loads((zoo / "other/model.json").read_text())


def test_only_the_zoo_may_share(tmp_path):
    shutil.copytree(HOME / FLOW, tmp_path / "flow")
    with pytest.raises(InputError, match="only models of the zoo share a classifier"):
        ncttt.load(tmp_path / "flow")
