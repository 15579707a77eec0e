"""Buffers that passes in training mode move: the NC-TTT authors' protocol, with and without gradients."""

import copy

import pytest
import torch
from torch import nn

import ncttt
from contrast_alone import CONTRAST_ALONE
from ncttt.model.norm import batch_norms
from ncttt.testing.cases import Case, attached, images, resnet, vgg

POLICY = "running(0.1, 20)"
METHOD = ncttt.NCTTT(
    conditional=False,
    hidden=32,
    moves="encoder",
    **CONTRAST_ALONE,
    norm=POLICY,
)


def buffers(model: nn.Module) -> list[torch.Tensor]:
    return [tensor.clone() for layer in batch_norms(model) for tensor in layer.buffers()]


def trained_in_place(net: nn.Module, batch: torch.Tensor, passes: int) -> nn.Module:
    net = copy.deepcopy(net).train()
    with torch.no_grad():
        for _ in range(passes):
            net(batch)
    return net.eval()


@pytest.mark.parametrize("build", [resnet, vgg])
def test_without_a_gradient_it_predicts_as_the_authors_code_does(build):
    net, batch = build().eval(), images(8)
    logits = ncttt.Adapter(net, ncttt.PTBN(norm=POLICY))(batch)
    expected = trained_in_place(net, batch, passes=20)(batch)
    torch.testing.assert_close(logits, expected.detach(), rtol=1e-4, atol=1e-5)


def test_with_a_gradient_every_step_is_one_pass():
    case, batch = Case("resnet", METHOD), images(8)
    logits = case.adapter(steps=3, lr=1e-2)(batch)
    model = copy.deepcopy(case.model).eval()
    for layer in batch_norms(model.classifier):
        layer.train()
    optimizer = torch.optim.Adam(model.encoder_parameters().values(), lr=1e-2)
    for _ in range(3):
        with model.whole_passes():  # the authors' code runs the whole network, so the statistics of all layers move
            loss = METHOD.adaptation_loss(model, batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(logits, model.eval()(batch).detach(), rtol=1e-4, atol=1e-5)


def test_steps_move_the_statistics_behind_the_tap_too():
    case = Case("resnet", METHOD)
    assert case.model.layer == "layer2"
    adapter = case.adapter(protocol="online")
    behind = batch_norms(adapter.model.classifier.get_submodule("layer3"))
    before = [layer.running_mean.clone() for layer in behind]
    adapter(images(8))
    assert behind
    assert not any(map(torch.equal, before, (layer.running_mean for layer in behind)))


def test_zero_steps_are_the_source_model_and_many_come_to_batch_statistics():
    case, batch = Case("resnet", METHOD), images(8)
    source = ncttt.Adapter(case.model, ncttt.Source())(batch)
    none, many = case.adapter(lr=1e-9).predict_at([0, 200], batch)
    assert torch.equal(none, source)
    batch_statistics = case.adapter(norm="batch", lr=1e-9, steps=0)(batch)
    # Not quite: buffers take the unbiased variance.
    assert (many - batch_statistics).norm() < 0.1 * (none - batch_statistics).norm()


@pytest.mark.parametrize("method", [METHOD, ncttt.PTBN(norm=POLICY)], ids=["nc_ttt", "ptbn"])
def test_an_episode_ends_where_it_began(method):
    model, batch = attached("resnet", METHOD), images(8)
    before = buffers(model)
    adapter = ncttt.Adapter(model, method, copy=False)
    first = adapter(batch)
    other = adapter(images(8, seed=5))
    assert torch.equal(adapter(batch), first)
    assert not torch.equal(first, other)
    adapter.reset()
    assert all(map(torch.equal, buffers(model), before))


def test_a_stream_remembers_its_statistics_and_can_be_saved():
    net = resnet().eval()
    stream = ncttt.Adapter(net, ncttt.PTBN(norm="running(0.1, 1)"), protocol="online")
    first = stream(images(8))
    state = stream.state_dict()
    second = stream(images(8))
    assert not torch.equal(first, second)
    again = ncttt.Adapter(net, ncttt.PTBN(norm="running(0.1, 1)"), protocol="online")
    again.load_state_dict(state)
    assert torch.equal(again(images(8)), second)
    stream.new_domain()
    assert torch.equal(stream(images(8)), first)


def test_looking_moves_nothing():
    case = Case("resnet", METHOD)
    adapter = case.adapter(protocol="online")
    before = buffers(adapter.model)
    adapter.shift(images(8))
    assert all(map(torch.equal, buffers(adapter.model), before))
    model = copy.deepcopy(case.model)
    model.calibrate([images(8)])
    assert all(map(torch.equal, buffers(model), buffers(case.model)))


def test_a_batch_that_falls_back_leaves_no_trace_in_the_statistics():
    case = Case("resnet", METHOD)
    for protocol in ("episodic", "online"):
        adapter = case.adapter(protocol=protocol, lr=1e30, steps=4)
        before = buffers(adapter.model)
        assert adapter(images(8)).isfinite().all()
        assert adapter.trace.fell_back
        assert all(map(torch.equal, buffers(adapter.model), before))


def test_the_score_after_the_steps_is_not_told_under_other_statistics():
    adapter = Case("resnet", METHOD).adapter()
    adapter(images(8))
    assert adapter.trace.shift_before is not None
    assert adapter.trace.shift_after is None


def test_a_single_image_works():
    adapter = ncttt.Adapter(resnet().eval(), ncttt.PTBN(norm="running(0.1, 1)"), protocol="online")
    assert adapter(images(1)).isfinite().all()


def test_the_discriminator_can_run_on_the_batch():
    settings = {"head": "flat", "discriminator_norm": True, "scaling": "none", "conditional": False, "hidden": 16}
    model = attached("resnet", ncttt.NCTTT(**settings)).eval()
    head, batch = model.branch.heads[0], images(8)
    with torch.no_grad():
        vectors = head.project(model.features(batch))[:, 0]
        hidden = head.discriminator[0](vectors)
        norm = head.discriminator[1]
        normalised = (hidden - hidden.mean(0)) / (hidden.var(0, correction=0) + 1e-5).sqrt() * norm.weight + norm.bias
        expected = head.discriminator[3](nn.functional.leaky_relu(normalised, 0.2)).sigmoid()[:, 0]
    shift = ncttt.Adapter(model, ncttt.NCTTT(**settings, discriminator_statistics="batch"), norm="source").shift(batch)
    torch.testing.assert_close(shift, expected, rtol=1e-4, atol=1e-5)
    still = ncttt.Adapter(model, norm="source").shift(batch)
    assert not torch.allclose(still, expected)
    with pytest.raises(ncttt.InputError, match="discriminator_statistics must be one of source, batch; found 'both'"):
        ncttt.NCTTT(discriminator_statistics="both")
