"""ClusT3: mutual information against counting and scikit-learn, several layers, health."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score

import ncttt
from branch_checks import check_clusters_belong_to_positions
from ncttt.methods.clust3 import mutual_information
from ncttt.testing.cases import CLASSIFIERS, attached, images


def test_positions_and_clusters_are_not_mixed():
    check_clusters_belong_to_positions()


def test_mutual_information_by_counting():
    """Of four sure samples three are in cluster 0 and one in cluster 1; two unsure ones tell nothing."""
    sure = torch.tensor([[20.0, -20.0]] * 3 + [[-20.0, 20.0]])
    three, one = 3 / 4, 1 / 4
    expected = -(three * math.log(three) + one * math.log(one))
    assert mutual_information(sure).item() == pytest.approx(expected, abs=1e-6)
    assert mutual_information(torch.tensor([[0.3, 0.3], [5.0, 5.0]])).item() == pytest.approx(0, abs=1e-6)
    half = torch.cat([sure[2:], torch.zeros(2, 2)])
    assert mutual_information(half).item() == pytest.approx(math.log(2) - 0.5 * math.log(2), abs=1e-6)


def test_mutual_information_of_hard_assignments_is_scikit_learns():
    clusters = np.random.default_rng(0).integers(7, size=200)
    logits = 60 * torch.nn.functional.one_hot(torch.from_numpy(clusters), 7).double()
    expected = mutual_info_score(clusters, np.arange(200))
    assert mutual_information(logits).item() == pytest.approx(expected, abs=1e-9)


def test_every_projector_counts_on_its_own():
    logits = torch.randn(30, 3, 4)
    alone = torch.stack([mutual_information(logits[:, number]) for number in range(3)])
    assert torch.allclose(mutual_information(logits), alone)


@pytest.mark.parametrize(("reduction", "count"), [("sum", 1), ("mean", 2 * 3)])
def test_losses_of_layers_and_projectors_are_added_or_averaged(reduction, count):
    method = ncttt.ClusT3(projectors=3, reduction=reduction)
    make, _ = CLASSIFIERS["resnet"]
    model = ncttt.attach(make(), ["layer1", "layer3"], method, images(2)).eval()
    logits, features = model.forward_with_features(images(6))
    parts = [-part for layer in model.branch(features) for part in mutual_information(layer)]
    assert len(parts) == 2 * 3
    assert torch.allclose(method.training_loss(model, images(6), features, logits), sum(parts) / count)
    assert torch.allclose(method.adaptation_loss(model, images(6)).loss, sum(parts) / count)


def test_the_default_is_the_authors_best():
    method = ncttt.ClusT3()
    assert (method.projectors, method.reduction) == (15, "sum")


def test_health_tells_a_collapsed_branch():
    method = ncttt.ClusT3()
    model = attached("resnet", method)
    logits, features = model.forward_with_features(images(16))
    healthy = {k: v.item() for k, v in method.health(model, images(16), features, logits).items()}
    assert 0 <= healthy["mutual_information"] <= healthy["mutual_information_maximum"] == pytest.approx(math.log(10))
    assert 1 <= healthy["clusters_used"] <= 10
    model.branch.projectors[0].weight.data.zero_()
    model.branch.projectors[0].bias.data[:] = torch.tensor([30.0] + [0.0] * 9).repeat(15)
    collapsed = {k: v.item() for k, v in method.health(model, images(16), features, logits).items()}
    assert len(method.warnings(collapsed)) == 2
    assert method.warnings({"mutual_information": 1.0, "clusters_used": 6.0}) == []


@pytest.mark.parametrize("wrong", [{"clusters": 1}, {"projectors": 0}, {"clusters": 2.5}, {"reduction": "max"}])
def test_wrong_settings(wrong):
    with pytest.raises(ncttt.InputError, match=next(iter(wrong))):
        ncttt.ClusT3(**wrong)
