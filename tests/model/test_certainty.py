"""The source gate: calibration, the level, one forward, old checkpoints, and that clean digits are left alone."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

import ncttt
from contrast_alone import CONTRAST_ALONE
from ncttt import InputError
from ncttt.data.corruptions import corrupt
from ncttt.model.certainty import certainty_of, source_levels
from ncttt.testing.cases import Case, always, attached, images, never, resnet

METHOD = ncttt.NCTTT(
    conditional=False,
    scaling="standardize",
    hidden=32,
    moves="encoder",
    **CONTRAST_ALONE,
)


def calibrated(method: ncttt.Method = METHOD) -> ncttt.Branched:
    model = attached("resnet", method)
    model.calibrate([images(16, seed) for seed in range(4)])
    return model


def test_calibration_stores_mean_and_spread_of_confidence_and_evidence_under_source_statistics():
    model = calibrated()
    with torch.no_grad():
        logits = torch.cat([model(images(16, seed)) for seed in range(4)])
    sure, strong = F.softmax(logits, 1).max(1).values, logits.exp().sum(1).log()
    expected = torch.stack([torch.stack([each.mean(), each.std(correction=0)]) for each in (sure, strong)])
    torch.testing.assert_close(model.source_certainty, expected)
    confidence, evidence = source_levels(model, 25)
    assert confidence == pytest.approx((sure.mean() - 2 * sure.std(correction=0) / 5).item() - 0.01, abs=1e-6)
    assert evidence == pytest.approx((strong.mean() - (2 / 5 + 0.1) * strong.std(correction=0)).item(), abs=1e-5)
    assert model.branch.source_score[0] > 0, "the method was not calibrated"


def test_calibration_takes_pairs_and_generators_and_leaves_modes_alone():
    model, expected = attached("resnet", METHOD), calibrated()
    model.train()
    model.calibrate((images(16, seed), torch.zeros(16)) for seed in range(4))
    assert torch.equal(model.source_certainty, expected.source_certainty)
    assert torch.equal(model.branch.source_score, expected.branch.source_score)
    assert all(module.training for module in model.modules())


def test_a_training_forgets_what_was_calibrated_with_other_weights():
    model = calibrated()
    model.forget()
    assert model.source_certainty.max() < 0
    assert model.method.source_level(model, 1) is None
    plus = attached("resnet", ncttt.TTTPlus())
    plus.calibrate([images(16)])
    assert plus.branch.feature_moments.known
    plus.forget()
    assert not plus.branch.feature_moments.known
    assert not plus.branch.projection_moments.known


def test_a_failed_calibration_changes_nothing():
    model = calibrated()
    before = model.source_certainty.clone()
    for bad, message in (([], "at least one batch"), ([torch.full((2, 3, 16, 16), torch.nan)], "finite")):
        with pytest.raises(InputError, match=message):
            model.calibrate(bad)
    assert torch.equal(model.source_certainty, before)


@pytest.mark.parametrize("method", [METHOD, ncttt.PTBN(), ncttt.Tent(), ncttt.Lame()], ids=lambda method: method.name)
def test_a_batch_like_the_source_costs_one_forward(method):
    adapter = ncttt.Adapter(calibrated(), method, stop="source")
    seen: list[int] = []
    adapter.model.classifier.layer1[0].register_forward_hook(lambda m, i, o: seen.append(len(o)))
    logits = adapter(images(16))
    assert seen == [16]
    assert (adapter.trace.stopped, adapter.trace.steps, adapter.trace.losses) == ("left to source", 0, ())
    assert adapter.trace.confidence == pytest.approx(F.softmax(logits, 1).max(1).values.mean().item())
    assert adapter.trace.evidence == pytest.approx(logits.logsumexp(1).mean().item())
    assert torch.equal(logits, ncttt.Adapter(adapter.model, ncttt.Source())(images(16)))


def test_without_a_stop_nobody_looks():
    adapter = ncttt.Adapter(calibrated(), ncttt.PTBN())
    seen: list[int] = []
    adapter.model.classifier.layer1[0].register_forward_hook(lambda m, i, o: seen.append(len(o)))
    adapter(images(16))
    assert seen == [16]
    assert adapter.trace.confidence is None


def test_a_stream_goes_on_as_if_it_had_not_met_the_batch():
    """A batch left to the source spends no random number, moves nothing, and does not end the optimizer's history."""
    model = calibrated(ncttt.TTTPlus())
    straight, gated = (ncttt.Adapter(model, stop="source", protocol="online") for _ in range(2))
    for adapter in (straight, gated):
        never(adapter.model)
    assert torch.equal(straight(images(6, 1)), gated(images(6, 1)))
    always(gated.model)
    gated(images(16))
    assert gated.trace.stopped == "left to source"
    never(gated.model)
    assert torch.equal(straight(images(6, 2)), gated(images(6, 2)))


def test_what_was_never_calibrated_is_told():
    for model, method in ((attached("resnet", METHOD), None), (resnet(), ncttt.PTBN())):
        with pytest.raises(InputError, match=r"model\.calibrate"):
            ncttt.Adapter(model, method, stop="source")


def test_a_plain_module_is_calibrated_as_a_branched_one():
    model = ncttt.Branched(resnet().eval(), None, ncttt.PTBN())
    model.calibrate([images(16)])
    adapter = ncttt.Adapter(model, stop="source")
    adapter(images(16))
    assert adapter.trace.stopped == "left to source"


def test_a_checkpoint_keeps_confidence_and_classes(tmp_path):
    model = calibrated()
    model.classes = ("a", "b", "c", "d", "e")
    ncttt.save(model, tmp_path)
    again = ncttt.load(tmp_path)
    assert torch.equal(again.source_certainty, model.source_certainty)
    assert again.classes == model.classes


def make_old(folder: Path) -> None:
    """A checkpoint of the time before there was a gate."""
    weights, description = folder / "model.safetensors", folder / "model.json"
    save_file({name: t for name, t in load_file(weights).items() if name != "source_certainty"}, weights)
    described = json.loads(description.read_text())
    del described["classes"]
    described["weights_sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
    description.write_text(json.dumps(described))


@pytest.mark.parametrize("double", [False, True])
def test_an_old_checkpoint_loads_and_is_not_calibrated(tmp_path, double):
    model = calibrated().double() if double else calibrated()
    ncttt.save(model, tmp_path)
    make_old(tmp_path)
    again = ncttt.load(tmp_path)
    assert again.classes is None
    assert again.source_certainty.tolist() == [[-1, -1], [-1, -1]]
    batch = images(4).to(model.mean.dtype)
    assert torch.equal(again(batch), model(batch))
    with pytest.raises(InputError, match=r"model\.calibrate"):
        ncttt.Adapter(again, stop="source")


def test_training_names_the_classes_and_forgets_an_old_calibration():
    model = ncttt.attach(ncttt.models.small(num_classes=10, width=4), "layer2", METHOD, torch.rand(2, 3, 32, 32))
    model.source_certainty.fill_(0.5)
    data = ncttt.data.load("digits", "fit").subset(range(64))
    ncttt.train(model, data, epochs=1, batch_size=32, observers=[])
    assert model.classes == data.classes == tuple("0123456789")
    assert model.source_certainty.tolist() == [[-1, -1], [-1, -1]]
    ncttt.train(model, data, epochs=1, batch_size=32, observers=[], held_out=data)
    assert 0 < model.source_certainty[0, 0] < 1


@pytest.fixture(scope="module")
def digits() -> tuple[ncttt.Branched, np.ndarray]:
    model = ncttt.load("digits-small-ncttt")
    model.calibrate(ncttt.data.batches(ncttt.data.load("digits", "val"), 100))
    return model, np.asarray(ncttt.data.load("digits", "test").images)[:100]


def tensor(pixels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pixels.copy()).permute(0, 3, 1, 2).float() / 255


@pytest.mark.parametrize("method", [ncttt.PTBN(), ncttt.Tent()], ids=lambda method: method.name)
def test_clean_digits_are_left_alone_and_shifted_ones_are_adapted_to(digits, method):
    model, pixels = digits
    adapter, free = ncttt.Adapter(model, method, stop="source"), ncttt.Adapter(model, method)
    with torch.no_grad():
        assert torch.equal(adapter(tensor(pixels)), model(tensor(pixels)))
    assert adapter.trace.stopped == "left to source"
    shifted = tensor(corrupt(pixels, "brightness", 3, constants="imagenet"))
    assert torch.equal(adapter(shifted), free(shifted))
    assert adapter.trace.stopped == free.trace.stopped != "left to source"


@pytest.mark.parametrize(
    "levels", [[[2.0, 0.0], [-1e9, 0.0]], [[0.0, 0.0], [1e9, 0.0]]], ids=["confidence", "evidence"]
)
def test_one_of_the_two_is_not_enough(levels):
    """A shift can make a network sure of one class for all images: high confidence with little evidence."""
    adapter = ncttt.Adapter(calibrated(), ncttt.PTBN(), stop="source")
    always(adapter.model)
    adapter(images(16))
    assert adapter.trace.stopped == "left to source"
    adapter.model.source_certainty.copy_(torch.tensor(levels))
    assert torch.equal(adapter(images(16)), ncttt.Adapter(adapter.model, ncttt.PTBN())(images(16)))
    assert adapter.trace.stopped == "nothing to learn"


def test_a_stream_judges_a_small_batch_with_the_images_before_it():
    adapter = Case("resnet", ncttt.PTBN()).adapter(stop="source", protocol="online")
    (mean, _), (evidence, _) = adapter.model.source_certainty.tolist()
    adapter.model.source_certainty.copy_(torch.tensor([[mean, 0.0], [evidence - 100, 0.0]]))
    recent = adapter.model.recent.certainty
    assert (recent == -1).all()
    adapter(images(3))
    first = certainty_of(Case("resnet", ncttt.PTBN()).model(images(3)).detach())
    torch.testing.assert_close(recent[:, -3:], first)
    assert (recent[:, :-3] == -1).all()
    recent[0, -40:], recent[1, -40:] = 0.0, evidence  # forty images before that it was not sure of at all
    adapter(images(2))
    assert adapter.trace.stopped != "left to source"
    recent[0, -60:] = 1.0
    adapter(images(2))
    assert adapter.trace.stopped == "left to source"
    adapter(images(70))
    own = certainty_of(Case("resnet", ncttt.PTBN()).model(images(70)).detach())
    torch.testing.assert_close(recent, own[:, -64:])
    adapter.reset()
    assert (recent == -1).all()


def test_a_batch_that_ends_in_an_error_is_not_judged_by(monkeypatch):
    adapter = Case("resnet", ncttt.NCTTT(conditional=False, hidden=32)).adapter(stop="source", protocol="online")
    adapter.model.source_certainty.copy_(torch.tensor([[2.0, 0.0], [1e9, 0.0]]))
    monkeypatch.setattr(ncttt.NCTTT, "adaptation_loss", lambda *_: (_ for _ in ()).throw(RuntimeError("broken")))
    with pytest.raises(RuntimeError, match="broken"):
        adapter(images(20))
    assert (adapter.model.recent.certainty == -1).all()


def test_a_state_keeps_what_a_stream_is_judged_by():
    case = Case("resnet", ncttt.PTBN())
    adapter, again = (case.adapter(stop="source", protocol="online") for _ in range(2))
    adapter(images(3))
    again.load_state_dict(adapter.state_dict())
    assert torch.equal(again.model.recent.certainty, adapter.model.recent.certainty)
    assert case.adapter(stop="source").model.recent is None
