"""ROID: against slow streams, at a batch of one too, and its parts by hand."""

import math

import pytest
import torch
from torch import nn

import ncttt
import stream_checks
from ncttt import InputError
from ncttt.methods.roid import smoothed_shares, soft_likelihood_ratio, symmetric_cross_entropy
from ncttt.methods.settings import method_from, settings_of
from ncttt.testing.cases import CLASSIFIERS, Case, images, resnet
from ncttt.testing.contract import check_loss_falls_on_its_own_batch
from stream_checks import BATCHES, confident, stream


@pytest.mark.parametrize("architecture", ["resnet", "vgg", "vit"])
def test_it_equals_a_slow_stream(architecture):
    stream_checks.check_roid_equals_a_slow_one(architecture)


def test_it_equals_a_slow_stream_of_single_images():
    stream_checks.check_roid_equals_a_slow_one(size=1)


def test_the_correction_is_on_probabilities():
    stream_checks.check_correction_is_on_probabilities()


def test_the_correction_can_be_left_out():
    model = confident(ncttt.ROID(correction=False))
    with ncttt.norm.statistics(model.batch_norms(), "batch"), torch.no_grad():
        expected = model(BATCHES[0].double())
    torch.testing.assert_close(stream(model, BATCHES[:1], method=ncttt.ROID(correction=False)), expected)


def test_the_ratio_by_hand():
    logits = torch.tensor([[math.log(0.7), math.log(0.3)], [20.0, 0.0]]).double()
    certain = -(0.99 * math.log(0.99 / 0.01 + 1e-5))
    expected = [-(0.7 * math.log(0.7 / 0.3 + 1e-5) + 0.3 * math.log(0.3 / 0.7 + 1e-5)), certain]
    torch.testing.assert_close(soft_likelihood_ratio(logits), torch.tensor(expected).double(), rtol=0, atol=1e-6)


def test_the_ratio_has_a_gradient_where_entropy_has_little():
    logits = torch.tensor([[4.0, 0.0]], requires_grad=True)
    ratio = torch.autograd.grad(soft_likelihood_ratio(logits).sum(), logits)[0].abs().max()
    entropy = torch.autograd.grad(torch.special.entr(logits.softmax(1)).sum(), logits)[0].abs().max()
    assert ratio > 5 * entropy


def test_the_symmetric_cross_entropy_by_hand():
    one, other = (torch.tensor([row]).log() for row in ([0.8, 0.2], [0.5, 0.5]))
    there = -(0.8 * math.log(0.5) + 0.2 * math.log(0.5))
    back = -(0.5 * math.log(0.8) + 0.5 * math.log(0.2))
    torch.testing.assert_close(symmetric_cross_entropy(one, other), torch.tensor([(there + back) / 2]))
    torch.testing.assert_close(symmetric_cross_entropy(other, one), torch.tensor([(there + back) / 2]))


def test_shares_are_smoothed_to_a_distribution():
    for count in (1, 2, 200):
        shares = smoothed_shares(torch.randn(count, 5, generator=torch.Generator().manual_seed(0)))
        assert shares.sum().item() == pytest.approx(1.0)
        assert shares.min() > 0


def test_the_loss_is_shared_out_over_the_batch_at_hand():
    """Twice the same images are twice the weights over twice the number."""
    model = confident(ncttt.ROID(consistency=0.0, norm="source"))
    losses = []
    for batch in (BATCHES[0], BATCHES[0].repeat(2, 1, 1, 1)):
        adapter = ncttt.Adapter(model)
        adapter(batch.double())
        losses.append(adapter.trace.losses[0])
    assert losses[0] == pytest.approx(losses[1], abs=1e-9)


def test_weights_come_back_to_the_source_where_nothing_pulls():
    model = confident(ncttt.ROID(back=1.0))
    adapter = ncttt.Adapter(model, protocol="online", lr=0.1)
    adapter(BATCHES[0].double())
    for name, source in adapter.model.source_parameters().items():
        assert torch.equal(ncttt.ROID().parameters(adapter.model)[name], source)


def test_the_memory_ends_with_its_domain():
    stream_checks.check_domains_are_independent(ncttt.ROID())


@pytest.mark.parametrize("architecture", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore:.*has no BatchNorm")
def test_the_loss_falls_where_the_weights_of_images_stay(architecture, monkeypatch):
    monkeypatch.setattr(ncttt.ROID, "_weights", lambda self, model, logits: torch.ones(len(logits)))
    check_loss_falls_on_its_own_batch(Case(architecture, ncttt.ROID(consistency=0.0), confident=True))


def test_views_are_made_of_the_images_that_count_alone():
    adapter = ncttt.Adapter(confident(ncttt.ROID()))
    sizes = []
    adapter.model.classifier.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    adapter(BATCHES[0].double())
    assert len(sizes) == 2
    assert 0 < sizes[1] < sizes[0] == 12


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"back": -0.01}, "back must be a finite number of at least 0"),
        ({"back": 1.5}, "back must be a share from 0 to 1; found 1.5"),
        ({"sharpness": math.inf}, "sharpness must be a finite number"),
        ({"consistency": -1}, "consistency must be a finite number"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ncttt.ROID(**settings)


def test_what_cannot_be_is_one_line():
    with pytest.raises(
        InputError, match="ROID moves scale and shift of normalisation layers; found none in Sequential"
    ):
        ncttt.Adapter(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), ncttt.ROID())
    with pytest.raises(InputError, match=r"views of ROID need images in \[0, 1\]; found .*mean=mean, std=std"):
        ncttt.Adapter(resnet(), ncttt.ROID())(images(4) * 4 - 2)
    with pytest.raises(InputError, match="ROID predicts by more than a forward"):
        ncttt.Adapter(resnet(), ncttt.ROID()).bake(images(4))
    assert method_from(settings_of(ncttt.ROID(back=0.1))) == ncttt.ROID(back=0.1)
