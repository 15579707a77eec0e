"""Predictions by the mean over an image and its mirror image, against the same by hand."""

from dataclasses import replace

import pytest
import torch

import ncttt
from ncttt.testing.cases import images, resnet


def by_hand(adapter, batch):
    """The mean of the softmax of two plain predictions, as logits."""
    return torch.stack([adapter(batch).softmax(1), adapter(batch.flip(3)).softmax(1)]).mean(0).log()


@pytest.mark.parametrize("method", [ncttt.Source(), ncttt.PTBN(), ncttt.PTBN(norm="blend(0.3)"), ncttt.ROID(steps=0)])
def test_it_is_the_mean_of_two_predictions(method):
    net, batch = resnet(), images(70)
    found = ncttt.Adapter(net, replace(method, mirror_mean=True))(batch)
    torch.testing.assert_close(found, by_hand(ncttt.Adapter(net, method), batch))
    assert not torch.allclose(found, ncttt.Adapter(net, method)(batch).log_softmax(1))


def test_steps_are_those_without_it():
    net, batch = resnet(), images(70)
    method = ncttt.Tent(copies=2, lr=1e-2)
    plain, mean = (ncttt.Adapter(net, replace(method, mirror_mean=on), protocol="online") for on in (False, True))
    plain(batch)
    found = mean(batch)
    still = {"steps": 0, "protocol": "online"}
    frozen = ncttt.Adapter(plain.model.classifier, ncttt.PTBN(), **still)
    torch.testing.assert_close(found, by_hand(frozen, batch))


def test_logits_of_a_gradient_pass_that_saw_both_are_the_prediction():
    net, batch = resnet(), images(70)
    found = ncttt.Adapter(net, ncttt.Tent(returns="before", copies=2, mirror_mean=True))(batch)
    both = ncttt.Adapter(net, ncttt.PTBN())(torch.cat([batch, batch.flip(3)])).softmax(1)
    torch.testing.assert_close(found, both.unflatten(0, (2, -1)).mean(0).log())


def test_logits_of_a_gradient_pass_without_the_mirror_images_are_not():
    net, batch = resnet(), images(70)
    before, after = (
        ncttt.Adapter(net, ncttt.Tent(returns=which, lr=1e-2, mirror_mean=True))(batch) for which in ("before", "after")
    )
    assert torch.equal(before, after)


def test_without_mirroring_it_is_off():
    net, batch = resnet(), images(70)
    off = ncttt.Adapter(net, ncttt.PTBN(mirror_mean=True, mirrored=False))(batch)
    assert torch.equal(off, ncttt.Adapter(net, ncttt.PTBN())(batch))


def test_statistics_of_a_stream_count_every_image_once():
    net = resnet()
    streams = [
        ncttt.Adapter(net, ncttt.PTBN(norm="stream(0.01)", mirror_mean=on), protocol="online") for on in (False, True)
    ]
    for seed in range(3):
        for stream in streams:
            stream(images(8, seed=seed))
    one, other = ({k: v for k, v in each.model.state_dict().items() if "running" in k} for each in streams)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("norm", "apart"), [("source", 1e-5), ("batch", 5e-2)])
def test_a_baked_network_predicts_alike(norm, apart):
    """A baked network has one set of statistics; those of the mirror images differ a little from it."""
    batch = images(70)
    adapter = ncttt.Adapter(resnet(), ncttt.Tent(mirror_mean=True, lr=1e-2, norm=norm))
    found = adapter(batch)
    torch.testing.assert_close(adapter.bake()(batch), found, atol=apart, rtol=0)


def test_a_healthy_stream_agrees_with_its_unadapted_model():
    """The watch looks twice, too; else the two would differ before anything was learned."""
    adapter = ncttt.Adapter(
        resnet(), ncttt.Tent(mirror_mean=True, lr=0.0), protocol="online", on_collapse="warn", mean=None
    )
    adapter(images(70))
    assert adapter.trace.agreement == 1.0
    assert adapter.trace.regret == pytest.approx(0.0, abs=1e-5)
