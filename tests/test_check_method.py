"""`ncttt.testing.check_method`: a method that keeps the contract passes, another learns which rule it broke."""

from dataclasses import dataclass

import pytest
import torch

import ncttt
from contract import RandomToy
from ncttt.testing import check_method

FAST = ["resnet"]


@dataclass(frozen=True, kw_only=True)
class Forgetful(RandomToy):
    """Moves a buffer that it does not declare."""

    def buffers(self, model):
        return {}


@dataclass(frozen=True, kw_only=True)
class Stuck(RandomToy):
    """Has a loss, but nothing to lower it by."""

    def parameters(self, model):
        return {}


@dataclass(frozen=True, kw_only=True)
class Narrow(ncttt.Source):
    """Leaves out two classes."""

    def predict(self, model, images):
        return model(images)[:, :3]


def test_a_class_or_an_instance_that_keeps_the_contract_passes():
    before = torch.get_rng_state()
    check_method(RandomToy)
    check_method(ncttt.Tent(moves="norm", lr=0.01), FAST)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Forgetful, "Forgetful on resnet breaks a rule. A reset brings everything back"),
        (Stuck, "Stuck on resnet breaks a rule. .*InputError: Stuck has a loss but nothing to move"),
        (
            Narrow(),
            r"Narrow on resnet breaks a rule. Logits are finite.*6 images gave .*\(6, 3\)",
        ),
        (type("Nameless", (ncttt.Method,), {}), "Nameless must be an ncttt.Method with a class variable `name`"),
        (int, "int must be an ncttt.Method"),
    ],
)
def test_a_broken_rule_is_named(method, message):
    with pytest.raises(AssertionError, match=message):
        check_method(method, FAST)


def test_a_network_that_a_method_cannot_run_on_can_be_left_out():
    with pytest.raises(AssertionError, match=r"Tent on vit breaks a rule.*found none in ViT"):
        check_method(ncttt.Tent, ["vit"])
    with pytest.raises(ncttt.InputError, match="no classifier 'resnt'; did you mean 'resnet'"):
        check_method(ncttt.Tent, ["resnt"])
