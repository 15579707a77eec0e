"""TTT++: contrastive loss, moments, queue, calibration."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import ncttt
from ncttt.methods.ttt_plus.branch import contrastive_accuracy, contrastive_loss
from ncttt.methods.ttt_plus.moments import FeatureQueue, SourceMoments, coral_distance, covariance, mean_distance
from ncttt.testing import contract
from ncttt.testing.cases import CLASSIFIERS, Case, attached, images


def test_contrastive_loss_by_a_slow_loop():
    torch.manual_seed(0)
    views = torch.randn(10, 6)
    total = 0.0
    for i in range(10):
        partner = (i + 5) % 10
        terms = {
            j: math.exp(torch.cosine_similarity(views[i], views[j], dim=0).item() / 0.5) for j in range(10) if j != i
        }
        total -= math.log(terms[partner] / sum(terms.values()))
    assert contrastive_loss(views, 0.5).item() == pytest.approx(total / 10, abs=1e-5)


def test_the_contrastive_loss_of_two_images_by_hand_at_the_scale_of_supervised_contrast():
    """Partners are equal, the other image is opposite: each view has logits 1 / T once and -1 / T twice."""
    views = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64).repeat(2, 1)
    simclr = math.log(1 + 2 * math.exp(-2 / 0.5))
    assert contrastive_loss(views, 0.5).item() == pytest.approx(simclr)
    assert contrastive_loss(views, 0.5, 0.07).item() == pytest.approx(simclr * 0.5 / 0.07)


@pytest.mark.parametrize("base_temperature", [0.07, 0.25])
def test_the_base_temperature_scales_training_and_adaptation_alike(base_temperature):
    model = attached("resnet", ncttt.TTTPlus())
    plain, scaled = (
        ncttt.TTTPlus(base_temperature=base, feature_weight=0.0, projection_weight=0.0)
        for base in (None, base_temperature)
    )

    def losses(method):
        torch.manual_seed(0)
        adapting = method.adaptation_loss(model, images(6)).loss.item()
        torch.manual_seed(0)
        return adapting, method.training_loss(model, images(6), None, None).item()

    assert losses(scaled) == pytest.approx([0.5 / base_temperature * loss for loss in losses(plain)])
    assert ncttt.TTTPlus().base_temperature == 0.07


def test_contrastive_accuracy_and_a_single_image():
    rows = torch.randn(4, 8)
    assert contrastive_accuracy(torch.cat([rows, rows + 1e-3])) == 1
    assert contrastive_accuracy(torch.cat([rows, rows.roll(1, 0)])) < 1
    alone = torch.randn(2, 8, requires_grad=True)
    loss = contrastive_loss(alone, 0.5)
    loss.backward()
    assert loss == 0
    assert alone.grad.isfinite().all()


def test_distances_are_those_of_numpy_covariances():
    generator = np.random.default_rng(0)
    source, target = generator.normal(size=(30, 4)), generator.normal(1, 2, size=(20, 4))
    assert np.allclose(covariance(torch.from_numpy(source)), np.cov(source.T))
    expected = ((np.cov(source.T) - np.cov(target.T)) ** 2).sum() / (4 * 4**2)
    distance = coral_distance(covariance(torch.from_numpy(source)), covariance(torch.from_numpy(target)))
    assert distance.item() == pytest.approx(expected)
    expected = ((source.mean(0) - target.mean(0)) ** 2).sum() / 4
    distance = mean_distance(torch.from_numpy(source.mean(0)), torch.from_numpy(target.mean(0)))
    assert distance.item() == pytest.approx(expected)


@pytest.mark.parametrize("count", [8, 64])
def test_source_rows_are_at_distance_one_whatever_their_scale_and_number(count):
    torch.manual_seed(0)
    mixing = 7 * torch.randn(5, 5)
    moments = SourceMoments(5)
    assert not moments.known
    moments.remember(torch.randn(100_000, 5) @ mixing + 3)
    distances = torch.tensor([moments.distances(torch.randn(count, 5) @ mixing + 3) for _ in range(2000)]).mean(0)
    assert torch.allclose(distances, torch.ones(2), atol=0.1)
    shifted = moments.distances(torch.randn(count, 5) @ mixing + 30)
    assert shifted[0] > 10


def test_the_queue_keeps_the_newest_and_replaces_a_batch_seen_again():
    queue = FeatureQueue(size=5, channels=1)
    rows = [torch.full((2, 1), float(number)) for number in range(4)]
    batches = [images(2, seed) for seed in range(4)]
    assert queue.join(batches[0], rows[0], 5).flatten().tolist() == [0, 0]
    assert queue.join(batches[1], rows[1], 5).flatten().tolist() == [1, 1, 0, 0]
    assert queue.join(batches[1], rows[1] + 0.5, 5).flatten().tolist() == [1.5, 1.5, 0, 0]
    assert queue.join(batches[2], rows[2], 5).flatten().tolist() == [2, 2, 1.5, 1.5, 0]
    assert queue.join(batches[2], rows[2], 5).flatten().tolist() == [2, 2, 1.5, 1.5, 0]
    assert queue.join(batches[3], rows[3], 3).flatten().tolist() == [3, 3, 2]
    large = torch.arange(7.0)[:, None]
    assert queue.join(images(7), large, 5).flatten().tolist() == list(range(7)), "the batch is never cut"
    assert not queue.state_dict(), "a stream's past is no part of a checkpoint"


def test_the_queue_matters_along_a_stream_only():
    model = Case("resnet", ncttt.TTTPlus(queue=32)).model
    without = replace(model.method, queue=0)
    episodic = [ncttt.Adapter(model, method)(images(6)) for method in (model.method, without)]
    assert torch.equal(*episodic)
    online = [ncttt.Adapter(model, method, protocol="online") for method in (model.method, without)]
    first, second = ([adapter(images(6, seed)) for adapter in online] for seed in range(2))
    assert torch.equal(*first)
    assert not torch.equal(*second)
    with pytest.raises(ncttt.InputError, match="room for 32 rows in its queue; found 64"):
        ncttt.Adapter(model, replace(model.method, queue=64))(images(6))


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("settings", [{"queue": 0}, {"queue": 8}, {"contrastive_weight": 0.0}])
def test_contract_with_and_without_queue_and_contrast(settings, check):
    check(Case("resnet", ncttt.TTTPlus(**settings)))


def test_an_online_state_carries_the_queue():
    model = Case("resnet", ncttt.TTTPlus(queue=16)).model
    one, other = (ncttt.Adapter(model, protocol="online") for _ in range(2))
    one(images(6, 1))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(images(6, 2)), other(images(6, 2)))


def test_calibration_takes_moments_of_all_batches_and_is_needed():
    method = ncttt.TTTPlus(norm="source")
    model = attached("resnet", method)
    with pytest.raises(ncttt.InputError, match="moments, which are not known yet"):
        ncttt.Adapter(model)(images(4))
    plain = ncttt.TTTPlus(norm="source", feature_weight=0.0, projection_weight=0.0)
    assert ncttt.Adapter(model, plain)(images(4)).isfinite().all()
    method.calibrate(model, [images(5, 1), (images(3, 2), torch.zeros(3))])
    features = model.features(torch.cat([images(5, 1), images(3, 2)])).mean((2, 3)).detach().double().numpy()
    moments = model.branch.feature_moments
    assert np.allclose(moments.mean, features.mean(0), atol=1e-5)
    assert np.allclose(moments.covariance, np.cov(features.T), atol=1e-5)
    with pytest.raises(ncttt.InputError, match="at least two source images"):
        method.calibrate(model, [])


def test_the_loss_has_its_three_parts():
    model = Case("resnet", ncttt.TTTPlus()).model

    def loss(**weights):
        torch.manual_seed(0)
        off = {"contrastive_weight": 0.0, "feature_weight": 0.0, "projection_weight": 0.0}
        return ncttt.TTTPlus(**(off | weights)).adaptation_loss(model, images(6)).loss.item()

    parts = loss(contrastive_weight=1.0) + 0.05 * loss(feature_weight=1.0) + 0.2 * loss(projection_weight=1.0)
    whole = loss(contrastive_weight=1.0, feature_weight=0.05, projection_weight=0.2)
    assert whole == pytest.approx(parts, rel=1e-4)


def test_several_layers_stand_side_by_side():
    make, _ = CLASSIFIERS["resnet"]
    method = ncttt.TTTPlus()
    model = ncttt.attach(make(), ["layer1", "layer3"], method, images(2)).eval()
    method.calibrate(model, [images(8)])
    assert model.branch.width == sum(f.shape[1] for f in model.features(images(2)))
    assert ncttt.Adapter(model, steps=1)(images(4)).isfinite().all()


def test_health_before_and_after_calibration_and_warnings():
    method = ncttt.TTTPlus()
    model = attached("resnet", method)
    logits, features = model.forward_with_features(images(16))
    before = method.health(model, images(16), features, logits)
    assert set(before) == {"contrastive_accuracy", "contrastive_chance", "spread"}
    assert before["contrastive_chance"].item() == pytest.approx(1 / 31)
    method.calibrate(model, [images(16)])
    after = method.health(model, images(16), features, logits)
    assert after["feature_alignment"] < 1e-3, "the very images of the calibration are at distance zero"
    model.branch.projector[2].weight.data.zero_()
    collapsed = {k: v.item() for k, v in method.health(model, images(16), features, logits).items()}
    assert any("collapsed" in warning for warning in method.warnings(collapsed))
    assert method.warnings({"contrastive_accuracy": 0.8, "contrastive_chance": 0.01, "spread": 0.5}) == []


def test_normalised_images_have_no_views():
    make, tap = CLASSIFIERS["resnet"]
    model = ncttt.attach(make(), tap, ncttt.TTTPlus(), images(2))
    with pytest.raises(ncttt.InputError, match=r"need images in \[0, 1\]; found -"):
        ncttt.TTTPlus().training_loss(model, images(4) - 1, None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue": -1},
        {"channels": 0},
        {"temperature": 0.0},
        {"base_temperature": 0.0},
        {"contrastive_weight": 0.0, "feature_weight": 0.0, "projection_weight": 0.0},
    ],
)
def test_wrong_settings(wrong):
    with pytest.raises(ncttt.InputError, match=next(iter(wrong))):
        ncttt.TTTPlus(**wrong)
