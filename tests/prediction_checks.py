"""Checks of TENT's and LAME's own promises, written so that planted faults make them fail; see `test_faults.py`."""

import math

import numpy as np
import torch
from sklearn.neighbors import kneighbors_graph
from torch import Tensor

import ncttt
from ncttt.methods.lame import AFFINITIES
from ncttt.testing.cases import attached, images


def slow_entropy(logits: Tensor) -> float:
    """Mean entropy of each image's class probabilities, one number at a time."""
    total = 0.0
    for row in logits.tolist():
        scale = sum(math.exp(value) for value in row)
        total -= sum(math.exp(value) / scale * math.log(math.exp(value) / scale) for value in row)
    return total / len(logits)


def unit_features(count: int = 24, dim: int = 6) -> Tensor:
    """Random directions, four of them twice."""
    features = torch.randn(count - 4, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.normalize(torch.cat([features, features[:4]]), dim=1)


def check_tent_gradient_by_finite_differences() -> None:
    """Central differences of the slow entropy, along two entries of every parameter that moves."""
    method = ncttt.Tent()
    model = attached("resnet", method).double()
    batch, step = images(6).double(), 1e-6
    with ncttt.norm.statistics(model.batch_norms(), "batch"):
        method.adaptation_loss(model, batch).loss.backward()
        for name, parameter in method.parameters(model).items():
            assert parameter.grad is not None, name
            for entry in (0, len(parameter) - 1):
                losses = []
                for sign in (1, -1):
                    with torch.no_grad():
                        parameter[entry] += sign * step
                        losses.append(slow_entropy(model(batch)))
                        parameter[entry] -= sign * step
                assert abs((losses[0] - losses[1]) / (2 * step) - parameter.grad[entry].item()) < 1e-7, name


def check_knn_graph_is_that_of_scikit_learn() -> None:
    features = torch.nn.functional.normalize(torch.randn(30, 6, dtype=torch.float64), dim=1)
    expected = kneighbors_graph(features.numpy(), 5, include_self=False).toarray()
    np.testing.assert_array_equal(AFFINITIES["knn"](features, 5).numpy(), expected)


def check_copies_are_neighbours_but_never_oneself() -> None:
    graph = AFFINITIES["knn"](unit_features(), 1)
    assert not graph.diagonal().any()
    assert torch.equal(graph.sum(1), torch.ones(24, dtype=torch.float64))
    for original in range(4):
        assert graph[original, 20 + original] == 1
        assert graph[20 + original, original] == 1
