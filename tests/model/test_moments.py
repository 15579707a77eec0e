"""Statistics for few images against slow, obvious loops over values."""

import math
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.moments import moments_along
from ncttt.model.norm import (
    aside,
    batch_share,
    instance,
    looking,
    predicting,
    prior,
    standing,
    statistics,
    stream,
    window,
)
from ncttt.model.windows import windows_of

POLICIES = ["prior(16)", "instance(2)", "stream(0.05)", "window(9)"]


def layer_and_input(images: int = 6) -> tuple[nn.BatchNorm2d, Tensor]:
    generator = torch.Generator().manual_seed(3)
    layer = nn.BatchNorm2d(4).double().eval()
    layer.running_mean = torch.randn(4, generator=generator, dtype=torch.double)
    layer.running_var = torch.rand(4, generator=generator, dtype=torch.double) + 0.5
    with torch.no_grad():
        layer.weight.normal_(generator=generator)
        layer.bias.normal_(generator=generator)
    return layer, 2 * torch.randn(images, 4, 3, 5, generator=generator, dtype=torch.double) + 1


@pytest.mark.parametrize("axes", [[0], [0, 2, 3], [2, 3]])
def test_the_gradient_of_moments_is_right_the_second_one_as_well(axes):
    _, features = layer_and_input(3)
    features = features[:, :2, :, :2].contiguous().requires_grad_()
    found, expected = moments_along(features, axes), torch.var_mean(features, axes, correction=0, keepdim=True)
    for one, other in zip(found, expected[::-1], strict=True):
        torch.testing.assert_close(one, other)
    assert torch.autograd.gradcheck(lambda x: moments_along(x, axes), features)
    assert torch.autograd.gradgradcheck(lambda x: moments_along(x, axes), features)


def moments(values: list[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    return mean, sum((value - mean) ** 2 for value in values) / len(values)


def normalised(layer: nn.BatchNorm2d, x: Tensor, image: int, channel: int, mean: float, var: float) -> Tensor:
    scale, shift = layer.weight[channel].item(), layer.bias[channel].item()
    return (x[image, channel] - mean) / math.sqrt(var + layer.eps) * scale + shift


def passed(layer: nn.Module, x: Tensor, policy: str) -> Tensor:
    with statistics([layer], policy):
        return layer(x)


@pytest.mark.parametrize("images", [1, 3, 50])
def test_a_prior_counts_the_source_as_so_many_images(images):
    layer, x = layer_and_input(images)
    given = passed(layer, x, prior(16))
    for channel in range(4):
        mean, var = moments(x[:, channel].flatten().tolist())
        mean = (16 * layer.running_mean[channel].item() + images * mean) / (16 + images)
        var = (16 * layer.running_var[channel].item() + images * var) / (16 + images)
        for image in range(images):
            torch.testing.assert_close(given[image, channel], normalised(layer, x, image, channel, mean, var))


@pytest.mark.parametrize("k", [0.5, 2])
def test_instance_aware_statistics_follow_the_formula(k):
    layer, x = layer_and_input()
    given = passed(layer, x, instance(k))
    for image in range(6):
        for channel in range(4):
            source, source_var = layer.running_mean[channel].item(), layer.running_var[channel].item()
            values = x[image, channel].flatten().tolist()
            mean = sum(values) / 15
            var = sum((value - mean) ** 2 for value in values) / 14
            off, error = mean - source, k * math.sqrt(source_var / 15)
            mean = source + (math.copysign(max(abs(off) - error, 0), off))
            off, error = var - source_var, k * math.sqrt(2 * source_var**2 / 14)
            var = source_var + math.copysign(max(abs(off) - error, 0), off)
            torch.testing.assert_close(given[image, channel], normalised(layer, x, image, channel, mean, var))


@pytest.mark.parametrize("share", [0.3, 1])
def test_instance_aware_statistics_around_those_of_the_batch(share):
    layer, x = layer_and_input()
    blends = deepcopy(layer)
    for channel in range(4):
        mean, var = moments(x[:, channel].flatten().tolist())
        blends.running_mean[channel] = (1 - share) * layer.running_mean[channel] + share * mean
        blends.running_var[channel] = (1 - share) * layer.running_var[channel] + share * var
    torch.testing.assert_close(passed(layer, x, instance(2, share)), passed(blends, x, instance(2)))
    torch.testing.assert_close(passed(layer, x, instance(1e6, share)), passed(layer, x, f"blend({share})"))
    single = x[:, :, :1, :1]  # one value an image, of which no statistics of its own can be told
    torch.testing.assert_close(passed(layer, single, instance(2, share)), passed(layer, single, f"blend({share})"))


def test_instance_aware_statistics_with_a_large_k_are_the_sources():
    layer, x = layer_and_input()
    torch.testing.assert_close(passed(layer, x, instance(1e6)), layer(x))


def test_a_stream_is_a_moving_mean_of_first_and_second_moments():
    layer, x = layer_and_input()
    rate = 0.05
    kept = [
        (mean, var + mean**2) for mean, var in zip(layer.running_mean.tolist(), layer.running_var.tolist(), strict=True)
    ]
    with torch.no_grad():
        for images in x.split([1, 2, 3]):
            with statistics([layer], stream(rate)) as applied:
                given = layer(images)
            applied.moves.keep()
            share = 1 - (1 - rate) ** len(images)
            for channel, (first, second) in enumerate(kept):
                values = images[:, channel].flatten().tolist()
                first = (1 - share) * first + share * sum(values) / len(values)
                second = (1 - share) * second + share * sum(value**2 for value in values) / len(values)
                kept[channel] = (first, second)
                for image in range(len(images)):
                    expected = normalised(layer, images, image, channel, first, second - first**2)
                    torch.testing.assert_close(given[image, channel], expected)


def test_one_batch_of_many_and_many_of_one_move_a_stream_alike():
    layer, x = layer_and_input(1)
    x = torch.cat([x, 2 - x]).repeat(64, 1, 1, 1)  # so that the order of images is all that differs
    ends = []
    for size in (128, 1):
        moved = deepcopy(layer)
        with torch.no_grad():
            for images in x.split(size):
                with statistics([moved], stream(0.001)) as applied:
                    moved(images)
                applied.moves.keep()
        ends.append(moved)
    for one, other in zip(ends[0].buffers(), ends[1].buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-3)
    distance = (ends[0].running_mean - layer.running_mean).abs() / (x.mean((0, 2, 3)) - layer.running_mean).abs()
    torch.testing.assert_close(distance, torch.full((4,), 1 - 0.999**128, dtype=torch.double))


@pytest.mark.parametrize("sizes", [[1] * 14, [4, 1, 5, 4], [14], [2, 12]])
def test_a_window_pools_the_last_images_and_the_source_stands_for_those_to_come(sizes):
    layer, x = layer_and_input(14)
    source = list(zip(layer.running_mean.tolist(), layer.running_var.tolist(), strict=True))
    windows = windows_of([layer], 9)
    seen = 0
    with torch.no_grad():
        for images in x.split(sizes):
            with statistics([layer], window(9), windows) as applied:
                given = layer(images)
            applied.moves.keep()
            seen += len(images)
            last = x[max(0, seen - max(9, len(images))) : seen]
            for channel, (mean, var) in enumerate(source):
                # Fifteen values a missing image, whose mean and variance are the source's.
                values = last[:, channel].flatten().tolist()
                spread = math.sqrt(var * 15 / 14)
                for _ in range(max(0, 9 - len(last))):
                    values += [mean] + [mean + spread] * 7 + [mean - spread] * 7
                mean, var = moments(values)
                for image in range(len(images)):
                    torch.testing.assert_close(
                        given[image, channel], normalised(layer, images, image, channel, mean, var)
                    )


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pass_moves_nothing_until_it_is_kept(policy):
    layer, x = layer_and_input()
    before = deepcopy(layer.state_dict())
    windows = windows_of([layer], 9)
    with statistics([layer], policy, windows if policy == "window(9)" else None) as applied:
        first = layer(x)
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    applied.moves.keep()
    moved = not all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert moved == policy.startswith(("stream", "window"))
    # What has moved is what the pass used.
    with torch.no_grad():
        torch.testing.assert_close(passed(layer, x, standing(policy)), first.detach())


@pytest.mark.parametrize("policy", POLICIES)
def test_gradients_flow_through_the_batchs_part(policy):
    layer, x = layer_and_input(2)
    x = x[:, :, :2, :2].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: passed(layer, v, policy).square(), (x,))
    loss = passed(layer, x, policy).square().sum()
    through = torch.autograd.grad(loss, x)[0]
    alone = torch.autograd.grad(passed(layer, x, "source").square().sum(), x)[0]
    assert not torch.allclose(through, alone)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("policy", POLICIES)
def test_features_of_half_precision_keep_it(policy, dtype):
    layer, x = layer_and_input()
    layer, x = layer.float(), x.float()
    exact, half = passed(layer, x, policy), passed(layer, x.to(dtype), policy)
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("policy", POLICIES)
def test_single_values_have_no_variance_of_their_own(policy):
    layer = nn.BatchNorm1d(3).eval()
    x = torch.randn(1, 3, generator=torch.Generator().manual_seed(0))
    given = passed(layer, x, policy)
    assert given.isfinite().all()
    if policy in ("prior(16)", "instance(2)"):
        torch.testing.assert_close(given, layer(x))
    else:  # moments of the source and of one value, of which it has a share
        share = batch_share(policy, 1)
        var = 1 - share + share * (1 - share) * x.square()
        torch.testing.assert_close(given, (x - share * x) / (var + layer.eps).sqrt())


@pytest.mark.parametrize("policy", ["stream(0.05)", "window(9)"])
def test_a_layer_that_runs_twice_moves_twice(policy):
    layer, x = layer_and_input()
    once = deepcopy(layer)
    windows, other = windows_of([layer], 9), windows_of([once], 9)
    with torch.no_grad():
        with statistics([layer], policy, windows if "window" in policy else None) as applied:
            layer(x[:3])
            twice = layer(x[3:])
        applied.moves.keep()
        for part in (x[:3], x[3:]):
            with statistics([once], policy, other if "window" in policy else None) as applied:
                last = once(part)
            applied.moves.keep()
    # The first run changed its input to the buffers' statistics, which had not moved yet: the rest is rounding.
    torch.testing.assert_close(twice, last)
    for one, another in zip(layer.buffers(), once.buffers(), strict=True):
        torch.testing.assert_close(one, another)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_passes_in_passing_means_for_steps_looks_and_predictions(policy):
    assert (looking(policy), predicting(policy)) == (policy, policy)
    assert standing(policy) == ("source" if policy.startswith(("stream", "window")) else policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_network_without_batch_norm_is_warned_about(policy):
    with pytest.warns(UserWarning, match="no BatchNorm"), statistics([], policy):
        pass


ODD = """prior(0) prior(-1) prior() prior(inf) prior stream(0) stream(1.1) stream(nan) stream(1,2) window(0) window(1.5)
window(-3) window() window(1e3) instance(0) instance(x) instance(-4) instance(4,2)
instance(4,0,0) instance() batch() batch(1) source(0.5) (4)"""


@pytest.mark.parametrize("policy", [*ODD.split(), ""])
def test_policies_that_make_no_sense_are_refused(policy):
    with pytest.raises(InputError, match="no statistics policy"):
        batch_share(policy)


@pytest.mark.parametrize("policy", ["batch", "running(0.1, 1)", *POLICIES])
def test_a_pass_aside_sees_the_same_statistics_and_move_nothing(policy):
    layer, x = layer_and_input()
    alone = deepcopy(layer)
    windows, other = (windows_of([part], 9) if policy == "window(9)" else None for part in (layer, alone))
    with (
        torch.no_grad(),
        statistics([layer], policy, windows) as applied,
        statistics([alone], policy, other) as expected,
    ):
        with aside([layer]):
            layer(2 * x)
        with aside([layer]):
            beside = layer(x)
        torch.testing.assert_close(beside, alone(x))
        layer(x)
    applied.moves.keep()
    expected.moves.keep()
    for one, another in zip(layer.buffers(), alone.buffers(), strict=True):
        torch.testing.assert_close(one, another)
