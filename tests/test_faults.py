"""Proof that the checks can fail: each planted fault breaks at least one of them."""

import pytest
import torch

import contract
import ncttt
import ncttt.adapter
import noise_checks
from architectures import images
from contract import Case
from ncttt.methods import nc_ttt
from ncttt.methods.nc_ttt import NCTTT
from ncttt.methods.noise_branch import NoiseHead
from ncttt.noise import Gaussian, soft_label
from ncttt.taps import Tap


def shared_noise(monkeypatch):
    """Every sample of the batch gets the same vector."""
    sample = Gaussian.sample
    monkeypatch.setattr(
        Gaussian,
        "sample",
        lambda self, like, sigma, g=None: sample(self, like[:, :1], sigma, g).expand_as(like).clone(),
    )


def noise_grows_with_the_batch(monkeypatch):
    """Noise scaled by sqrt(B)."""
    sample = Gaussian.sample
    monkeypatch.setattr(
        Gaussian, "sample", lambda self, like, sigma, g=None: like.shape[1] ** 0.5 * sample(self, like, sigma, g)
    )


def swapped_labels(monkeypatch):
    monkeypatch.setattr(nc_ttt, "soft_label", lambda *args: 1 - soft_label(*args))


def two_passes(monkeypatch):
    """In-views and out-views each get a BatchNorm pass of their own."""
    discriminate = NoiseHead.discriminate
    monkeypatch.setattr(
        NoiseHead,
        "discriminate",
        lambda self, z, condition: torch.cat([discriminate(self, part, condition) for part in z.chunk(2)]),
    )


def trainable_head(monkeypatch):
    parameters = NCTTT.parameters
    monkeypatch.setattr(
        NCTTT, "parameters", lambda self, model: parameters(self, model) | dict(model.branch.named_parameters())
    )


def hook_left_behind(monkeypatch):
    monkeypatch.setattr(Tap, "_remove", lambda self: None)


def users_statistics_moved(monkeypatch):
    """The user's model sees a batch in training mode."""
    own_copy = ncttt.adapter._own_copy

    def faulty(model, method):
        own = own_copy(model, method)
        modes = [module.training for module in model.modules()]
        model.train()(images(4))
        for module, mode in zip(model.modules(), modes, strict=True):
            module.training = mode
        return own

    monkeypatch.setattr(ncttt.adapter, "_own_copy", faulty)


def head_statistics_of_the_test_batch(monkeypatch):
    own_copy = ncttt.adapter._own_copy

    def faulty(model, method):
        own = own_copy(model, method)
        own.branch.train()
        return own

    monkeypatch.setattr(ncttt.adapter, "_own_copy", faulty)


def on_resnet(check):
    return lambda: check(Case("resnet", NCTTT(discriminator_norm=True)))


FAULTS = {
    shared_noise: noise_checks.check_noise_is_independent,
    noise_grows_with_the_batch: noise_checks.check_noise_has_its_scale,
    swapped_labels: noise_checks.check_discriminator_learns_the_right_side,
    two_passes: noise_checks.check_loss_equals_a_slow_one,
    trainable_head: on_resnet(contract.check_only_declared_tensors_move),
    hook_left_behind: on_resnet(contract.check_no_hooks_left),
    users_statistics_moved: on_resnet(contract.check_user_model_untouched),
    head_statistics_of_the_test_batch: noise_checks.check_head_uses_source_statistics,
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(fault, monkeypatch):
    check = FAULTS[fault]
    check()
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        check()
