"""The monitor: its false alarms and its alarms on real digits, any classifier, single images, order, saving."""

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

import ncttt
from ncttt import InputError
from ncttt.data import corrupted, load
from ncttt.monitor.looking import look_at
from ncttt.testing.cases import attached, images, resnet


def pixels(data) -> torch.Tensor:
    return torch.from_numpy(np.asarray(data.images[:])).permute(0, 3, 1, 2).float().div(255)


@pytest.fixture(scope="module")
def digits() -> dict[str, torch.Tensor]:
    """Source images to calibrate on, fresh ones, and the same under fog; none was learned from."""
    test = load("digits", "test")
    halves = np.random.default_rng(0).permutation(len(test)).reshape(2, -1)
    known, fresh = test.subset(halves[0]), test.subset(halves[1])
    foggy = corrupted(fresh, "fog", 5)
    return {
        "known": pixels(known),
        "fresh": pixels(fresh),
        "foggy": pixels(foggy),
        "labels": torch.tensor(fresh.labels),
    }


@pytest.fixture(scope="module")
def monitor(digits) -> ncttt.Monitor:
    return ncttt.Monitor(ncttt.load("digits-small-ncttt"), window=20).calibrate([digits["known"]])


def small_monitor(model: nn.Module | None = None, **settings) -> ncttt.Monitor:
    settings = {"window": 8, "false_alarms": 0.05} | settings
    return ncttt.Monitor(model or resnet(), **settings).calibrate(images(16, seed) for seed in range(4))


def alarms(monitor: ncttt.Monitor, stream: torch.Tensor, windows: int, seed: int = 0) -> float:
    """The share of windows of images drawn from a stream that raise the alarm."""
    draw = torch.Generator().manual_seed(seed)
    raised = 0
    for _ in range(windows):
        monitor.new_stream()
        raised += monitor(stream[torch.randperm(len(stream), generator=draw)[: monitor.window]]).window.alarm
    return raised / windows


def test_false_alarms_on_fresh_source_images_are_near_the_rate_asked_for(digits):
    often = ncttt.Monitor(ncttt.load("digits-small-ncttt"), window=10, false_alarms=0.1).calibrate([digits["known"]])
    assert 0.02 <= alarms(often, digits["fresh"], 100) <= 0.2


def test_each_image_of_the_source_is_as_odd_as_the_others_are(digits, monitor):
    p = monitor(digits["fresh"]).p
    assert (p < 0.1).float().mean() == pytest.approx(0.1, abs=0.06)
    assert p.mean() == pytest.approx(0.5, abs=0.08)


def test_strong_fog_raises_the_alarm_and_says_why(digits, monitor):
    monitor.new_stream()
    reading = monitor(digits["foggy"][:20])
    assert reading.window.alarm
    assert reading.window.p < 1e-6
    assert {**reading.window.signals, **reading.window.layers}[reading.window.reason] > 5
    assert reading.window.reason in str(reading.window)
    assert str(reading.window).startswith("drift in 20 images: p = ")
    assert reading.p.median() < 0.05


def test_a_stream_sorted_by_class_is_no_drift_but_its_classes_are_shown(digits, monitor):
    order = digits["labels"].argsort(stable=True)
    monitor.new_stream()
    windows = [monitor(batch).window for batch in digits["fresh"][order].split(20)]
    assert sum(window.alarm for window in windows) <= 1
    assert max(window.class_p for window in windows) < 1e-6
    assert windows[0].class_shares.max() > 0.7


def test_windows_span_batches(digits, monitor):
    monitor.new_stream()
    at_once = monitor(digits["fresh"][:30]).window
    monitor.new_stream()
    sizes = [monitor(batch).window.images for batch in digits["fresh"][:27].split(9)]
    one_by_one = monitor(digits["fresh"][27:30]).window
    assert sizes == [9, 18, 20]
    assert one_by_one.images == 20
    assert one_by_one.p == pytest.approx(at_once.p, rel=1e-3)
    torch.testing.assert_close(one_by_one.class_shares, at_once.class_shares)


def test_the_window_s_number_is_that_of_a_normal_test_of_its_scores():
    monitor = small_monitor()
    reading = monitor(images(8, 9))
    classes = reading.logits.shape[1]
    scores = monitor._stream.calibration.scores(look_at(monitor.model, images(8, 9))).odd
    with torch.no_grad():
        known = torch.cat([monitor.model.eval()(images(16, seed)).argmax(1) for seed in range(4)]).bincount(
            minlength=classes
        )
    shares = reading.logits.argmax(1).bincount(minlength=classes) / 8
    unknown = max(
        1 / 64, sum(share**2 / (count + 5) for share, count in zip(shares.tolist(), known.tolist(), strict=True))
    )
    expected = scores.mean() / (1 / 8 + unknown) ** 0.5
    assert reading.window.p == reading.window.odd_p, "eight images are too few for the second test"
    assert reading.window.p == pytest.approx(1 - torch.distributions.Normal(0, 1).cdf(expected).item(), abs=1e-6)


def test_the_number_of_an_image_is_the_rank_of_oddness_and_distance_among_source_images():
    """Image by image, with scipy's normal distribution and an explicit inverse."""
    monitor = small_monitor()
    calibration = monitor._stream.calibration
    with torch.no_grad():
        scores = calibration.scores(look_at(monitor.model, images(8, 9)))
    precision = calibration.precision.numpy()
    source = calibration.distance_ranks.numpy()
    for odd, parts, p in zip(scores.odd.tolist(), scores.parts.numpy(), monitor(images(8, 9)).p.tolist(), strict=True):
        distance = sum(parts[i] * precision[i, j] * parts[j] for i in range(len(parts)) for j in range(len(parts)))
        below = sum(value < distance for value in source) + 0.5
        unlike = odd + scipy.stats.norm.ppf(below / (len(source) + 1))
        rank = sum(value < unlike for value in calibration.unlike_ranks.tolist()) + 0.5
        assert p == pytest.approx(1 - rank / (len(source) + 1), abs=1e-6)


def test_images_that_differ_without_being_odder_raise_the_alarm_too():
    monitor = small_monitor(window=32)
    calm = torch.full((32, *images(1).shape[1:]), 0.5)
    window = monitor(calm).window
    assert window.alarm
    assert window.p == min(1, 2 * min(window.odd_p, window.other_p))
    assert window.other_p < 1e-6


def test_an_image_scores_alone_as_it_does_in_a_batch():
    monitor = small_monitor(attached("resnet", ncttt.NCTTT(conditional=True)))
    batch = images(6, 9)
    together = monitor(batch)
    alone = [monitor(image[None]) for image in batch.flip(0)][::-1]
    torch.testing.assert_close(torch.cat([reading.p for reading in alone]), together.p)
    for name, values in together.values.items():
        torch.testing.assert_close(torch.cat([r.values[name] for r in alone]), values, rtol=1e-4, atol=1e-5)
    assert alone[0].p.shape == (1,)


def test_any_classifier_will_do_and_one_without_batch_norm_is_watched_by_its_certainty():
    plain = nn.Sequential(nn.Flatten(), nn.Linear(images(1)[0].numel(), 5))
    assert set(small_monitor(plain)(images(4)).signals) == {"confidence", "evidence"}
    assert set(small_monitor(resnet())(images(4)).signals) == {"confidence", "evidence", "features"}
    branched = attached("resnet", ncttt.NCTTT())
    assert set(small_monitor(branched)(images(4)).signals) == {"confidence", "evidence", "features", "branch"}


def test_a_layer_s_distance_is_that_of_an_obvious_loop():
    from ncttt.monitor.looking import distance_of

    layer = nn.BatchNorm2d(3)
    layer.running_mean, layer.running_var = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 0.5])
    maps = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    for image, distance in zip(maps, distance_of(layer, maps), strict=True):
        means, ratios = 0.0, 0.0
        for channel, mean, var in zip(image, layer.running_mean, layer.running_var, strict=True):
            means += (channel.mean() - mean) ** 2 / (var + layer.eps) / 3
            ratios += ((channel.var(correction=0) + layer.eps) / (var + layer.eps)).log() ** 2 / 3
        assert distance.item() == pytest.approx((means + ratios).log().item(), abs=1e-5)


def test_the_model_is_left_as_it_was_and_no_hook_stays():
    model = attached("resnet", ncttt.NCTTT()).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    monitor = small_monitor(model, copy=False)
    monitor(images(4))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())


def test_hooks_are_removed_when_the_pass_fails():
    monitor = small_monitor()
    with pytest.raises(RuntimeError):
        monitor(images(2)[:, :1])
    assert not any(module._forward_pre_hooks for module in monitor.model.modules())


def test_beside_an_adapter_both_see_what_they_see_alone():
    model = attached("resnet", ncttt.NCTTT())
    alone = ncttt.Adapter(model, protocol="online")
    expected = [alone(images(8, seed)) for seed in range(3)]
    monitor = small_monitor(model)
    source = [monitor(images(8, seed)).p for seed in range(3)]
    beside, again = ncttt.Adapter(model, protocol="online"), small_monitor(model)
    for seed in range(3):
        assert torch.equal(again(images(8, seed)).p, source[seed])
        assert torch.equal(beside(images(8, seed)), expected[seed])


def test_its_logits_are_those_of_the_model_as_it_was_trained():
    model = resnet().eval()
    with torch.no_grad():
        torch.testing.assert_close(small_monitor(model)(images(4)).logits, model(images(4)))


def test_a_calibration_is_saved_and_loaded_for_the_same_weights_only(tmp_path):
    model, file = attached("resnet", ncttt.NCTTT()), tmp_path / "monitor.safetensors"
    monitor = small_monitor(model)
    monitor.save(file)
    again = ncttt.Monitor(model, window=8, false_alarms=0.05).load(file)
    one, other = monitor(images(4)), again(images(4))
    assert torch.equal(one.p, other.p)
    assert one.window.p == other.window.p
    model.calibrate([images(16)])  # what a model remembers of the source changes no weights
    ncttt.Monitor(model, window=8, false_alarms=0.05).load(file)
    next(model.classifier.parameters()).data += 1
    with pytest.raises(InputError, match="other weights"):
        ncttt.Monitor(model, window=8).load(file)
    file.write_bytes(b"no tensors")
    with pytest.raises(InputError, match="no safetensors file"):
        monitor.load(file)


def test_what_is_asked_is_checked():
    with pytest.raises(InputError, match="calibrate"):
        ncttt.Monitor(resnet())(images(2))
    with pytest.raises(InputError, match="at least 128 calibration images; found 64"):
        small_monitor(window=128)
    with pytest.raises(InputError, match="at least 100 calibration images; found 64"):
        small_monitor(false_alarms=0.01)
    with pytest.raises(InputError, match="whole number of images"):
        ncttt.Monitor(resnet(), window=0)
    with pytest.raises(InputError, match="between 0 and 1"):
        ncttt.Monitor(resnet(), false_alarms=0)
    with pytest.raises(InputError, match="not what adapts it"):
        ncttt.Monitor(ncttt.Adapter(resnet(), ncttt.PTBN()))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="normalisation of its own"):
        ncttt.Monitor(attached("resnet", ncttt.NCTTT()), mean=(0.5,), std=(0.5,))
    with pytest.raises(InputError, match="found none"):
        ncttt.Monitor(resnet()).calibrate([])
