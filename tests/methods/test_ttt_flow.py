"""TTTFlow: log-determinant, inversion, density, standardisation, health."""

import math

import pytest
import torch
from torch import nn

import ncttt
from branch_checks import check_log_determinant_by_jacobian, random_flow
from ncttt.methods.ttt_flow.flow import Flow, Standardise
from ncttt.testing.cases import CLASSIFIERS, attached, images


def test_log_determinant_is_that_of_the_jacobian():
    check_log_determinant_by_jacobian()


@pytest.mark.parametrize("channels", [2, 3, 8])
def test_the_inverse_is_one(channels):
    flow = random_flow(channels)
    rows = 2 * torch.randn(20, channels).double()
    assert torch.allclose(flow.inverse(flow(rows)[0]), rows, atol=1e-9)
    assert torch.allclose(flow(flow.inverse(rows))[0], rows, atol=1e-9)


def test_the_density_integrates_to_one():
    flow = random_flow(2, limit=0.5)
    axis = torch.linspace(-30, 30, 500).double()
    grid = torch.cartesian_prod(axis, axis)
    density = (-2 * flow.negative_log_likelihood(grid)).exp()
    assert density.sum().item() * (axis[1] - axis[0]).item() ** 2 == pytest.approx(1, abs=2e-3)


def test_an_untrained_flow_is_the_gaussian():
    flow = Flow(4, couplings=3, hidden=8, limit=2.0)
    flow.train()(torch.randn(500, 4) * torch.tensor([1.0, 2.0, 3.0, 0.1]) + 5)
    flow.eval()
    rows = torch.randn(50, 4) + 5
    assert torch.allclose(flow.negative_log_likelihood(rows), flow.gaussian_cost(rows))
    spread = flow.standardise.spread()
    normal = torch.distributions.Normal(flow.standardise.mean, spread).log_prob(rows)
    assert torch.allclose(flow.gaussian_cost(rows), -normal.mean(1), atol=1e-5)


def test_standardisation_counts_all_rows_and_survives_a_dead_channel():
    layer = Standardise(3, shrinkage=0)
    rows = torch.randn(5, 40, 3) * torch.tensor([1.0, 4.0, 0.0]) + torch.arange(5).view(5, 1, 1)
    for batch in rows:
        layer.train()(batch)
    assert torch.allclose(layer.mean, rows.flatten(0, 1).mean(0), atol=1e-5)
    assert torch.allclose(layer.variance, rows.flatten(0, 1).var(0, correction=0), atol=1e-4)
    before = layer.mean.clone()
    layer.eval()(rows[0])
    assert torch.equal(layer.mean, before)
    dead = Standardise(2)
    latent, log_determinant = dead.train()(torch.tensor([[0.0, 1.0], [0.0, -1.0]]))
    assert latent.isfinite().all()
    assert log_determinant.isfinite()


def test_training_leaves_the_encoder_alone():
    method = ncttt.TTTFlow()
    model = attached("resnet", method).train()
    assert method.trains == "branch"
    logits, features = model.forward_with_features(images(4))
    method.training_loss(model, images(4), features, logits).backward()
    assert all(p.grad is None for p in model.classifier.parameters())
    assert any(p.grad is not None for p in model.branch.parameters())


def test_the_loss_is_the_mean_over_positions():
    method = ncttt.TTTFlow()
    model = attached("resnet", method)
    features = model.features(images(2))
    flow = model.branch.flows[0]
    costs = [
        flow.negative_log_likelihood(features[b, :, h, w][None])
        for b in range(2)
        for h in range(features.shape[2])
        for w in range(features.shape[3])
    ]
    assert torch.allclose(method.adaptation_loss(model, images(2)).loss, torch.stack(costs).mean(), atol=1e-5)


def test_several_layers_have_a_flow_each():
    make, _ = CLASSIFIERS["resnet"]
    model = ncttt.attach(make(), ["layer1", "layer3"], ncttt.TTTFlow(), images(2)).eval()
    assert len(model.branch.flows) == 2
    assert ncttt.Adapter(model, steps=1)(images(4)).isfinite().all()


def test_health_compares_with_a_gaussian_and_knows_bits():
    """A flow that learned a curved distribution needs fewer bits; an untrained one no fewer."""
    method = ncttt.TTTFlow(couplings=4, hidden=32)
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.Linear(2, 5))
    model = ncttt.attach(net, "1", method, torch.rand(2, 1, 1, 2))
    torch.manual_seed(0)
    x = torch.randn(2000, 1)
    rows = torch.cat([x, x.square() + 0.05 * torch.randn(2000, 1)], dim=1)
    logits = torch.zeros(2000, 5)
    model.train()
    method.training_loss(model, rows, rows, logits)
    untrained = {k: v.item() for k, v in method.health(model.eval(), rows, rows, logits).items()}
    expected = -torch.distributions.Normal(rows.mean(0), rows.std(0)).log_prob(rows).mean().item() / math.log(2)
    assert untrained["bits_per_dimension"] == pytest.approx(expected, abs=5e-3)
    assert method.warnings(untrained)
    optimizer = torch.optim.Adam(model.branch.parameters(), lr=5e-3)
    for _ in range(150):
        optimizer.zero_grad()
        method.training_loss(model.train(), rows, rows, logits).backward()
        optimizer.step()
    trained = {k: v.item() for k, v in method.health(model.eval(), rows, rows, logits).items()}
    assert trained["bits_per_dimension"] < trained["gaussian_bits_per_dimension"] - 0.5
    assert method.warnings(trained) == []


def test_a_single_channel_is_an_error():
    net = nn.Sequential(nn.Conv2d(3, 1, 1), nn.Flatten(), nn.Linear(256, 5))
    with pytest.raises(ncttt.InputError, match="at least 2 channels; found 1"):
        ncttt.attach(net, "0", ncttt.TTTFlow(), images(2))


@pytest.mark.parametrize("wrong", [{"couplings": 0}, {"hidden": 1.5}, {"limit": 0.0}])
def test_wrong_settings(wrong):
    with pytest.raises(ncttt.InputError, match=next(iter(wrong))):
        ncttt.TTTFlow(**wrong)
