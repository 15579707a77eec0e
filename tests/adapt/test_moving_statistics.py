"""Statistics for few images in an adapter: what moves is reset, saved, guarded and baked like all that moves."""

import io
import warnings

import pytest
import torch
from torch import nn

import ncttt
from contrast_alone import CONTRAST_ALONE
from ncttt.adapt import SmallBatchWarning
from ncttt.testing.cases import Branching, Case, ViT, images, never, resnet, vgg

MOVING = ["stream(0.05)", "window(9)"]
POLICIES = ["prior(16)", "instance(4)", *MOVING]
LEARNING = ncttt.NCTTT(
    conditional=False,
    hidden=32,
    moves="encoder",
    **CONTRAST_ALONE,
)


def tensors(module: nn.Module) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in module.state_dict().values()]


def adapter_of(net: nn.Module, policy: str, **settings: object) -> ncttt.Adapter:
    return ncttt.Adapter(net, ncttt.PTBN(norm=policy), **{"protocol": "online", **settings})


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallBatchWarning)
        yield


@pytest.mark.parametrize("build", [resnet, vgg, Branching])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_reset_is_bit_exact(policy, build):
    adapter = adapter_of(build().eval(), policy)
    before = tensors(adapter.model)
    first = adapter(images(3))
    second = adapter(images(3))
    assert torch.equal(first, second) == (policy not in MOVING)
    adapter.reset()
    assert all(map(torch.equal, tensors(adapter.model), before))
    assert torch.equal(adapter(images(3)), first)


@pytest.mark.parametrize("policy", POLICIES)
def test_order_does_not_matter_in_episodes(policy):
    adapter = adapter_of(resnet().eval(), policy, protocol="episodic")
    first, second = adapter(images(2, 1)), adapter(images(1, 2))
    assert torch.equal(adapter(images(1, 2)), second)
    assert torch.equal(adapter(images(2, 1)), first)


@pytest.mark.parametrize("policy", MOVING)
def test_a_batch_moves_the_statistics_once_however_it_is_predicted(policy):
    case = Case("resnet", LEARNING)
    ends = []
    for steps in ([3], [0, 1, 3]):
        adapter = case.adapter(norm=policy, protocol="online")
        adapter.predict_at(steps, images(4))
        ends.append(tensors(adapter.model))
    assert all(map(torch.equal, *ends))


@pytest.mark.parametrize("policy", MOVING)
@pytest.mark.parametrize("method", [ncttt.Tent(), LEARNING], ids=lambda method: method.name)
def test_a_stream_that_learns_moves_its_statistics(policy, method):
    adapter = Case("resnet", method).adapter(norm=policy, protocol="online")
    norm = next(part for part in adapter.model.classifier.modules() if isinstance(part, nn.BatchNorm2d))
    before = norm.running_mean.clone()
    adapter(images(4))
    assert adapter.trace.steps > 0
    assert not torch.equal(norm.running_mean, before)
    adapter.reset()
    assert torch.equal(norm.running_mean, before)


@pytest.mark.parametrize("policy", MOVING)
def test_a_state_goes_on_where_it_was(policy):
    net = resnet().eval()
    adapter = adapter_of(net, policy)
    adapter(images(3))
    file = io.BytesIO()
    torch.save(adapter.state_dict(), file)
    expected = adapter(images(2, 1))
    again = adapter_of(net, policy)
    again.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    assert torch.equal(again(images(2, 1)), expected)


def test_a_state_of_another_window_or_with_odd_values_is_refused():
    net = resnet().eval()
    adapter = adapter_of(net, "window(9)")
    state = adapter.state_dict()
    with pytest.raises(ncttt.InputError, match="norm="):
        adapter_of(net, "window(8)").load_state_dict(state)
    name = next(name for name in state if name.endswith(".variances"))
    state[name] = state[name] - 100
    with pytest.raises(ncttt.InputError, match="negative"):
        adapter.load_state_dict(state)


@pytest.mark.parametrize("policy", MOVING)
def test_a_batch_that_falls_back_or_fails_moves_nothing(policy):
    adapter = Case("resnet", LEARNING).adapter(norm=policy, protocol="online", lr=1e30, steps=4)
    before = tensors(adapter.model)
    assert adapter(images(4)).isfinite().all()
    assert adapter.trace.fell_back
    assert all(map(torch.equal, tensors(adapter.model), before))
    with pytest.raises(ncttt.InputError, match="finite"):
        adapter(images(4) * torch.nan)
    assert all(map(torch.equal, tensors(adapter.model), before))


@pytest.mark.parametrize("policy", MOVING)
def test_looking_moves_nothing(policy):
    adapter = Case("resnet", LEARNING).adapter(norm=policy, protocol="online")
    before = tensors(adapter.model)
    adapter.shift(images(4))
    adapter.bake(images(4))
    assert all(map(torch.equal, tensors(adapter.model), before))


@pytest.mark.parametrize("policy", ["prior(16)", *MOVING])
@pytest.mark.parametrize("protocol", ["episodic", "online"])
def test_a_baked_module_predicts_the_last_batch_as_the_adapter_did(policy, protocol):
    adapter = adapter_of(resnet().eval(), policy, protocol=protocol)
    adapter(images(7, 1))
    logits = adapter(images(3))
    torch.testing.assert_close(adapter.bake()(images(3)), logits, rtol=1e-4, atol=1e-5)


def test_statistics_of_each_image_cannot_be_baked():
    adapter = adapter_of(resnet().eval(), "instance(4)")
    adapter(images(3))
    with pytest.raises(ncttt.InputError, match="statistics of each image cannot be baked"):
        adapter.bake()


@pytest.mark.parametrize("policy", POLICIES)
def test_the_user_s_own_model_is_as_before(policy):
    net = resnet().eval()
    before, parts = tensors(net), [name for name, _ in net.named_modules()]
    adapter = adapter_of(net, policy, copy=False)
    adapter(images(3))
    adapter.reset()
    assert all(map(torch.equal, tensors(net), before))
    assert [name for name, _ in net.named_modules()] == parts


@pytest.mark.parametrize("policy", POLICIES)
def test_a_network_without_batch_norm_is_told(policy):
    with pytest.warns(UserWarning, match="has no BatchNorm"):
        adapter = adapter_of(ViT().eval(), policy)
    assert torch.equal(adapter(images(2)), ncttt.Adapter(adapter.model, ncttt.Source())(images(2)))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_models_of_other_precisions(policy, kind):
    adapter = adapter_of(resnet().eval(), policy).to(kind)
    for count in (1, 3):
        logits = adapter(images(count))
        assert logits.dtype == kind
        assert logits.isfinite().all()


def test_a_batch_that_is_left_to_the_source_moves_nothing():
    case = Case("resnet", ncttt.PTBN(norm="stream(0.05)"))
    adapter = case.adapter(protocol="online", stop="source")
    before = tensors(adapter.model)
    adapter.model.source_certainty.copy_(torch.tensor([[0.0, 0.0], [-1e9, 0.0]]))
    adapter(images(3))
    assert adapter.trace.stopped == "left to source"
    never(adapter.model)
    changed = [torch.equal(*pair) for pair in zip(tensors(adapter.model), before, strict=True)].count(False)
    assert changed == 2  # the certainty that was set above, and that of the images
    adapter(images(3))
    assert [torch.equal(*pair) for pair in zip(tensors(adapter.model), before, strict=True)].count(False) > 2


@pytest.mark.parametrize(
    ("norm", "why"),
    [
        (("stream(0.1)", "batch"), "follows the predictions of a stream"),
        (("window(9)", "window(8)"), "one moving mean or window"),
        (("running(0.1, 1)", "stream(0.1)"), "one moving mean or window"),
    ],
)
def test_pairs_that_contradict_themselves_are_refused(norm, why):
    with pytest.raises(ncttt.InputError, match=why):
        ncttt.Adapter(resnet(), ncttt.Tent(), norm=norm)


@pytest.mark.parametrize("policy", MOVING)
def test_a_layer_that_runs_twice_cannot_be_baked(policy):
    adapter = adapter_of(Branching().eval(), policy)
    adapter(images(3))
    with pytest.raises(ncttt.InputError, match="runs more than once in a forward"):
        adapter.bake()
