"""DeYO: against a slow stream, torch-ttt where it is right, and its patches one by one."""

import math
import sys
from types import ModuleType
from unittest.mock import patch

import pytest
import torch
from test_peers import peer_engine
from torch import nn

import ncttt
import stream_checks
from ncttt import InputError
from ncttt.methods import deyo
from ncttt.methods.deyo import shuffled_patches
from ncttt.methods.settings import method_from, settings_of
from ncttt.testing.cases import images, resnet
from stream_checks import BATCHES, confident


@pytest.mark.parametrize("architecture", ["resnet", "vgg", "vit"])
def test_it_equals_a_slow_stream(architecture):
    stream_checks.check_deyo_equals_a_slow_one(architecture)


@pytest.mark.parametrize("size", [16, 12])
def test_patches_are_those_of_a_slow_shuffle(size):
    batch = images(5, size=size)
    torch.manual_seed(3)
    shuffled = shuffled_patches(batch, 4)
    torch.manual_seed(3)
    orders = torch.rand(5, 16).argsort(1).tolist()
    expected = torch.stack(
        [stream_checks.slow_shuffle(image, order, 4) for image, order in zip(batch, orders, strict=True)]
    )
    assert torch.equal(shuffled, expected)
    assert len({tuple(order) for order in orders}) == 5
    assert torch.equal(shuffled_patches(batch, 1), batch)


def test_images_whose_sides_are_no_multiples_are_scaled():
    flat = torch.full((2, 3, 17, 18), 0.25)
    torch.testing.assert_close(shuffled_patches(flat, 4), flat)
    with pytest.raises(InputError, match="images of 3x16 cannot be cut into 4x4 of them"):
        shuffled_patches(torch.rand(1, 3, 3, 16), 4)


def test_torch_ttt_has_the_same_loss(monkeypatch):
    """Its margins are made for 1000 classes, so they are given; its weights carry a gradient, so its steps differ."""
    pytest.importorskip("torch_ttt")
    model = confident(ncttt.DeYO(), spread=3.0)
    with patch.dict(sys.modules, {"einops": _einops()}):
        engine = peer_engine("deyo")(
            stream_checks.plain_network(model), None, 0.5 * math.log(5), 0.2, 0.4 * math.log(5)
        ).train()
    same = {}
    monkeypatch.setattr(deyo, "shuffled_patches", lambda images, count: same.setdefault("x", images.flip(3)))
    engine._patch_shuffle = lambda images: images.flip(3)
    adapter = ncttt.Adapter(model)
    adapter(BATCHES[0].double())
    _, loss = engine(stream_checks.normalised(BATCHES[0]))
    assert adapter.trace.losses[0] == pytest.approx(loss.item(), abs=1e-8)


def _einops() -> ModuleType:
    module = ModuleType("einops")
    module.rearrange = None  # type: ignore[attr-defined]  # its shuffle is replaced
    return module


def test_only_certain_images_are_shuffled_and_no_gradient_is_kept_for_them():
    model = confident(ncttt.DeYO(), spread=3.0)
    adapter = ncttt.Adapter(model)
    sizes = []
    adapter.model.classifier.register_forward_hook(
        lambda _, inputs, output: sizes.append((len(inputs[0]), output.requires_grad))
    )
    adapter(BATCHES[0].double())
    assert [needs for _, needs in sizes] == [True, False]
    assert sizes[1][0] < sizes[0][0] == 12


def test_a_batch_that_teaches_nothing():
    for settings in ({"margin": 0.0}, {"least_drop": 2.0, "margin": 1.0}):
        adapter = ncttt.Adapter(resnet(), ncttt.DeYO(**settings))
        logits = adapter(images(6))
        assert adapter.trace.stopped == "nothing to learn"
        assert torch.equal(logits, adapter.predict_at([0], images(6))[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patches": 0}, "patches must be a whole number of at least 1; found 0"),
        ({"margin": -1.0}, "margin must be a finite number of at least 0"),
        ({"least_drop": -2.0}, "least_drop must be a finite number of at least -1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ncttt.DeYO(**settings)


def test_a_network_without_normalisation_and_saved_settings():
    with pytest.raises(
        InputError, match="DeYO moves scale and shift of normalisation layers; found none in Sequential"
    ):
        ncttt.Adapter(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), ncttt.DeYO())
    assert method_from(settings_of(ncttt.DeYO(patches=2))) == ncttt.DeYO(patches=2)
