"""LAME: against a plain loop, scikit-learn and its own theory; where its features come from."""

import itertools
import math

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import ncttt
import prediction_checks
from ncttt import InputError
from ncttt.methods.lame import AFFINITIES, adjust
from ncttt.methods.settings import method_from, settings_of
from ncttt.model.features import penultimate_features
from ncttt.testing.cases import CLASSES, CLASSIFIERS, Branching, Case, attached, images, resnet
from ncttt.testing.contract import CHECKS

SETTINGS = {"weight": 1.0, "max_steps": 100, "tolerance": 1e-8}


def slow_affinity(kind: str, rows: list[list[float]], k: int) -> list[list[float]]:
    count = len(rows)
    distance = [[math.dist(a, b) for b in rows] for a in rows]
    order = [sorted((j for j in range(count) if j != i), key=lambda j: distance[i][j])[:k] for i in range(count)]
    width = sum(distance[i][order[i][-1]] for i in range(count)) / count
    entry = {
        "linear": lambda i, j: sum(a * b for a, b in zip(rows[i], rows[j], strict=True)),
        "knn": lambda i, j: float(j in order[i]),
        "rbf": lambda i, j: math.exp(-(distance[i][j] ** 2) / (2 * width**2)),
    }[kind]
    return [[entry(i, j) for j in range(count)] for i in range(count)]


def slow_adjustment(probabilities: list[list[float]], affinity: list[list[float]], steps: int) -> list[list[float]]:
    count, classes = len(probabilities), len(probabilities[0])
    assigned = probabilities
    for _ in range(steps):
        new = []
        for i in range(count):
            agreement = [sum(affinity[i][j] * assigned[j][c] for j in range(count)) for c in range(classes)]
            weights = [(probabilities[i][c] + 1e-10) * math.exp(agreement[c]) for c in range(classes)]
            new.append([weight / sum(weights) for weight in weights])
        assigned = new
    return assigned


def batch(count: int = 20) -> tuple[Tensor, Tensor]:
    """Probabilities and unit features, in double precision."""
    torch.manual_seed(0)
    features = nn.functional.normalize(torch.randn(count, 6, dtype=torch.float64), dim=1)
    return torch.randn(count, 4, dtype=torch.float64).mul(2).softmax(1), features


@pytest.mark.parametrize("kind", AFFINITIES)
@pytest.mark.parametrize("steps", [1, 3, 50])
def test_it_equals_a_plain_loop(kind, steps):
    probabilities, features = batch()
    adjusted = adjust(probabilities, AFFINITIES[kind](features, 5), 1.0, steps, tolerance=0.0).exp()
    expected = slow_adjustment(probabilities.tolist(), slow_affinity(kind, features.tolist(), 5), steps)
    np.testing.assert_allclose(adjusted.numpy(), np.array(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", AFFINITIES)
def test_the_method_equals_a_plain_loop_on_the_penultimate_features(kind):
    model = attached("resnet", ncttt.Lame(affinity=kind))
    adjusted = ncttt.Adapter(model)(images(12)).exp()
    net, pooled = model.classifier, []
    handle = net.fc.register_forward_pre_hook(lambda module, inputs: pooled.append(inputs[0]))
    with torch.no_grad():
        probabilities = model(images(12)).double().softmax(1)
    handle.remove()
    rows = nn.functional.normalize(pooled[0].double(), dim=1).tolist()
    expected = slow_adjustment(probabilities.tolist(), slow_affinity(kind, rows, 5), 100)
    np.testing.assert_allclose(adjusted.numpy(), np.array(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("weight", [0.3, 1.0, 5.0])
def test_the_energy_with_half_the_weight_never_rises(kind, weight):
    probabilities, features = batch(40)
    affinity = AFFINITIES[kind](features, 5)
    unary = -(probabilities + 1e-10).log()
    energies = []
    for steps in range(1, 30):
        log_assigned = adjust(probabilities, affinity, weight, steps, tolerance=0.0)
        assigned = log_assigned.exp()
        pairs = 0.5 * weight * (affinity @ assigned) * assigned
        energies.append((unary * assigned - pairs + assigned * log_assigned).sum().item())
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(energies))
    assert energies[-1] < energies[0]


def test_neighbours_that_swap_their_classes_for_ever_end_by_the_cap():
    probabilities = torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.float64)
    affinity = AFFINITIES["knn"](torch.eye(2, dtype=torch.float64), 5)
    even, odd = (adjust(probabilities, affinity, 20.0, steps, 1e-8).exp() for steps in (100, 101))
    assert even[0, 0] > 0.9
    assert odd[0, 0] < 0.1


def test_it_stops_once_the_energy_has_settled():
    probabilities, features = batch()
    steps = []

    class Counting(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            steps.append(function is Tensor.log_softmax)
            return function(*args, **(kwargs or {}))

    with Counting():
        adjusted = adjust(probabilities, AFFINITIES["rbf"](features, 5), **SETTINGS)
    assert 2 < sum(steps) < 60
    settled = adjust(probabilities, AFFINITIES["rbf"](features, 5), 1.0, 1000, 0.0)
    torch.testing.assert_close(adjusted.exp(), settled.exp(), rtol=0, atol=1e-3)


def test_knn_graph_is_that_of_scikit_learn():
    prediction_checks.check_knn_graph_is_that_of_scikit_learn()


def test_copies_are_neighbours_but_never_oneself():
    prediction_checks.check_copies_are_neighbours_but_never_oneself()


@pytest.mark.parametrize("features", [batch()[1], prediction_checks.unit_features()], ids=["random", "copies"])
def test_rbf_is_that_of_scikit_learn(features):
    distance = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    width = distance.fill_diagonal_(torch.inf).sort(1).values[:, 4].mean().item()
    expected = rbf_kernel(features.numpy(), gamma=1 / (2 * width**2))
    np.testing.assert_allclose(AFFINITIES["rbf"](features, 5).numpy(), expected, rtol=0, atol=1e-12)


def test_rbf_of_nothing_but_copies():
    torch.testing.assert_close(AFFINITIES["rbf"](torch.eye(3)[:1].expand(4, 3), 2), torch.ones(4, 4))
    pairs = torch.eye(3).repeat(2, 1)
    torch.testing.assert_close(AFFINITIES["rbf"](pairs, 1), torch.eye(3).repeat(2, 2))


@pytest.mark.parametrize("kind", AFFINITIES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_small_batches(kind, count):
    model = attached("resnet", ncttt.Lame(affinity=kind))
    logits = ncttt.Adapter(model)(images(count))
    torch.testing.assert_close(logits.exp().sum(1), torch.ones(count))
    if count == 1 and kind == "knn":
        torch.testing.assert_close(logits, model(images(1)).log_softmax(1).detach())


def test_no_steps_or_no_weight_is_the_source():
    model = attached("resnet", ncttt.Lame())
    expected = ncttt.Adapter(model, ncttt.Source())(images(8)).log_softmax(1)
    for settings in ({"max_steps": 0}, {"weight": 0.0}):
        torch.testing.assert_close(ncttt.Adapter(model, ncttt.Lame(**settings))(images(8)), expected)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("architecture", CLASSIFIERS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_contract_of_the_other_affinities(kind, architecture, check):
    check(Case(architecture, ncttt.Lame(affinity=kind)))


@pytest.mark.parametrize("kind", AFFINITIES)
def test_no_tensor_of_all_pairs_times_features(kind):
    features, largest = nn.functional.normalize(torch.randn(50, 400), dim=1), [0]

    class Largest(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            largest[0] = max(largest[0], result.numel() if isinstance(result, Tensor) else 0)
            return result

    with Largest():
        AFFINITIES[kind](features, 5)
    assert largest[0] <= 50 * 400


def test_the_classifier_runs_once():
    adapter = ncttt.Adapter(attached("resnet", ncttt.Lame()))
    count = []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    adapter(images(4))
    assert len(count) == 1


def test_features_of_the_last_linear_layer_that_runs_or_of_a_named_layer():
    model = attached("branching", ncttt.Lame())  # its last layer is registered first
    logits, features = penultimate_features(model, images(3))
    torch.testing.assert_close(model.classifier.last(features), logits)
    logits, features = penultimate_features(model, images(3), "body")
    torch.testing.assert_close(features, model.features(images(3)).mean((2, 3)))


class WithoutLinear(nn.Module):
    def __init__(self, squeeze: bool) -> None:
        super().__init__()
        self.squeeze = nn.Linear(3, 3) if squeeze else nn.Identity()
        self.classes = nn.Conv2d(3, CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.squeeze(x.mean((2, 3)))[:, :, None, None]
        return self.classes(x * gate).mean((2, 3))


def test_a_network_that_does_not_end_in_a_linear_layer_is_an_error_unless_a_layer_is_named():
    with pytest.raises(InputError, match=r"found none that runs in WithoutLinear.*Lame\(layer='...'\)"):
        ncttt.Adapter(WithoutLinear(squeeze=False), ncttt.Lame())(images(4))
    adapter = ncttt.Adapter(WithoutLinear(squeeze=True), ncttt.Lame())
    with pytest.raises(InputError, match=r"found 5 logits, and 3 values from the last one"):
        adapter(images(4))
    assert not adapter.model.classifier.squeeze._forward_pre_hooks
    assert ncttt.Adapter(WithoutLinear(squeeze=True), ncttt.Lame(layer="classes"))(images(4)).isfinite().all()


def test_a_layer_that_does_not_exist_or_cannot_be_read_is_an_error():
    with pytest.raises(InputError, match=r"no layer 'layr2' in \w+; did you mean 'layer2'"):
        ncttt.Adapter(resnet(), ncttt.Lame(layer="layr2"))(images(4))
    with pytest.raises(InputError, match="layer 'unused' never runs"):
        ncttt.Adapter(Branching(), ncttt.Lame(layer="unused"))(images(4))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"affinity": "kn"}, "no affinity 'kn'; did you mean 'knn'"),
        ({"k": 0}, "k must be a whole number of at least 1; found 0"),
        ({"max_steps": 1.5}, "max_steps must be a whole number"),
        ({"weight": -1.0}, "weight must be finite and not negative"),
        ({"tolerance": math.nan}, "tolerance must be finite"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ncttt.Lame(**settings)


@pytest.mark.parametrize("kind", AFFINITIES)
def test_a_row_can_name_each_affinity(kind):
    settings = settings_of(ncttt.Lame(affinity=kind))
    assert settings["name"] == "lame"
    assert settings["affinity"] == kind
    assert method_from(settings) == ncttt.Lame(affinity=kind)
