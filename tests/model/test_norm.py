"""Statistics policies against hand-computed normalisation; buffers and modes come back untouched."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from ncttt.base.errors import InputError
from ncttt.model.norm import (
    batch_norms,
    batch_share,
    blend,
    looking,
    predicting,
    running,
    statistics,
    stepping,
)
from ncttt.testing.cases import assert_same, fingerprint, images, resnet, vgg


def layer_and_input() -> tuple[nn.BatchNorm2d, torch.Tensor]:
    torch.manual_seed(0)
    layer = nn.BatchNorm2d(4)
    assert layer.running_mean is not None
    assert layer.running_var is not None
    layer.running_mean.normal_()
    layer.running_var.uniform_(0.5, 2)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    return layer, 3 * torch.randn(6, 4, 5, 5) + 1


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_policies_normalise_by_the_mixed_moments(alpha, training):
    layer, x = layer_and_input()
    layer.train(training)
    var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
    mean = (1 - alpha) * layer.running_mean + alpha * mean
    var = (1 - alpha) * layer.running_var + alpha * var
    expected = (x - mean[:, None, None]) / (var + layer.eps).sqrt()[:, None, None]
    expected = expected * layer.weight[:, None, None] + layer.bias[:, None, None]
    policies = {0.0: ["source", "blend(0)"], 1.0: ["batch", "blend(1.0)"]}.get(alpha, [blend(alpha)])
    for policy in policies:
        before = fingerprint(layer)
        with statistics([layer], policy):
            torch.testing.assert_close(layer(x), expected, rtol=1e-5, atol=1e-5)
        assert_same(before, fingerprint(layer))


def test_gradient_flows_through_the_batch_share_of_the_statistics():
    layer, x = layer_and_input()
    layer, x = layer.double().eval(), x.double()[:2, :, :2, :2].requires_grad_()
    for policy in ("batch", blend(0.4), "source"):
        with statistics([layer], policy):
            assert torch.autograd.gradcheck(lambda v: layer(v).square(), (x,))


def test_in_one_layer_twenty_moves_of_momentum_are_a_blend():
    layer, x = layer_and_input()
    with statistics([layer], blend(1 - 0.9**20)):
        blended = layer(x)
    layer.train()
    for _ in range(20):
        layer(x)
    # PyTorch moves its buffers by the unbiased variance, hence the small difference.
    torch.testing.assert_close(layer.eval()(x), blended, rtol=0.01, atol=0.01)


def test_a_single_value_per_channel_keeps_source_statistics():
    layer = nn.BatchNorm1d(3).eval()
    x = torch.randn(1, 3)
    for policy in ("batch", blend(0.5)):
        with statistics([layer], policy):
            torch.testing.assert_close(layer(x), x, rtol=1e-4, atol=1e-4)


def test_state_comes_back_after_an_error():
    net = vgg()
    before = fingerprint(net)
    with pytest.raises(RuntimeError), statistics(batch_norms(net), "batch"):
        net(torch.rand(2, 7, 16, 16))
    assert_same(before, fingerprint(net))


def test_a_subclass_with_its_own_activation_keeps_it():
    class Activated(nn.BatchNorm2d):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).relu()

    layer = Activated(3).eval()
    for policy in ("source", "batch", blend(0.5)):
        with statistics([layer], policy):
            assert (layer(images(4) - 0.5) >= 0).all()


def test_layers_without_running_statistics_are_left_alone():
    net = nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False), resnet())
    assert net[0] not in batch_norms(net)


def test_a_network_without_batch_norm_is_warned_about():
    with pytest.warns(UserWarning, match="no BatchNorm"), statistics([], "batch"):
        pass


@pytest.mark.parametrize(
    "policy",
    [
        "bacth",
        "blend(2)",
        "blend()",
        "blend(-0.1)",
        "blend(nan)",
        3,
        "blend(1.2.3)",
        "blend(0.1, 2)",
        "running(0.1)",
        "running(0, 2)",
        "running(2, 2)",
        "running(0.1, 0)",
        "running(nan, 1)",
        "running(0.1, 1.5)",
        "running(0.1, -1)",
    ],
)
def test_unknown_policies_are_refused(policy):
    with pytest.raises(InputError, match="policy"):
        batch_share(policy)


def test_a_blend_reads_back_exactly():
    assert batch_share(blend(1 - 0.9**20)) == 1 - 0.9**20


@pytest.mark.parametrize("outer", ["source", "batch", "blend(0.3)"])
@pytest.mark.parametrize("inner", ["source", "batch", "blend(0.7)"])
def test_a_policy_inside_another_replaces_it_for_a_while(outer, inner):
    layer, x = layer_and_input()
    alone = {}
    for policy in (outer, inner):
        with statistics([layer], policy):
            alone[policy] = layer(x)
    before = fingerprint(layer)
    with statistics([layer], outer):
        with statistics([layer], inner):
            assert torch.equal(layer(x), alone[inner])
        assert torch.equal(layer(x), alone[outer])
    assert_same(before, fingerprint(layer))


def test_a_blend_keeps_half_precision():
    layer, x = layer_and_input()
    with statistics([layer], blend(0.5)):
        exact = layer(x)
        half = layer.eval()(x.to(torch.bfloat16))
    torch.testing.assert_close(half.float(), exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("passes", [1, 20])
def test_a_running_policy_is_passes_in_training_mode(passes):
    net, batch = vgg().eval(), images(6)
    by_hand = deepcopy(net).train()
    for layer in batch_norms(by_hand):
        layer.momentum = 0.1
    with torch.no_grad():
        for _ in range(passes):
            by_hand(batch)
        with statistics(batch_norms(net), running(0.1, passes)):
            net(batch)
    assert not any(layer.training for layer in batch_norms(net))
    for moved, expected in zip(batch_norms(net), batch_norms(by_hand), strict=True):
        torch.testing.assert_close(moved.running_mean, expected.running_mean)
        torch.testing.assert_close(moved.running_var, expected.running_var)
        assert moved.momentum == 0.1


def test_a_running_policy_is_no_blend_in_a_network():
    net, batch = vgg().eval(), images(6)
    with torch.no_grad(), statistics(batch_norms(net), blend(1 - 0.9**20)):
        blended = net(batch)
    with torch.no_grad(), statistics(batch_norms(net), running(0.1, 20)):
        net(batch)
    with torch.no_grad():
        assert (net(batch) - blended).abs().max() > 0.01 * blended.abs().max()


def test_what_a_running_policy_means_for_steps_looks_and_predictions():
    policy = running(0.1, 20)
    assert (stepping(policy), looking(policy), predicting(policy)) == ("running(0.1, 1)", "batch", "source")
    for other in ("source", "batch", "blend(0.5)"):
        assert (stepping(other), looking(other), predicting(other)) == (other, other, other)


def test_a_running_policy_inside_another_moves_nothing_afterwards():
    layer, x = layer_and_input()
    with statistics([layer], "batch"):
        with statistics([layer], running(0.5)):
            layer(x)
        before = [buffer.clone() for buffer in layer.buffers()]
        layer(x)
        assert all(map(torch.equal, before, layer.buffers()))
