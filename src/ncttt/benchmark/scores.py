"""Figures of predictions: accuracy, mean accuracy of the classes, likelihood, calibration."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

BINS = 15


def class_accuracy(right: np.ndarray, labels: np.ndarray) -> float:
    """The mean over the classes present of the share that is right.

    >>> class_accuracy(np.array([True, True, False]), np.array([0, 0, 1]))
    0.5
    """
    counts = np.bincount(labels)
    hits = np.bincount(labels, weights=right, minlength=len(counts))
    return float((hits[counts > 0] / counts[counts > 0]).mean())


def negative_log_likelihood(logits: Tensor, labels: Tensor) -> float:
    """Mean of -log of the probability of the true class.

    >>> round(negative_log_likelihood(torch.zeros(3, 4), torch.tensor([0, 1, 2])), 4)
    1.3863
    """
    return torch.nn.functional.cross_entropy(logits.double(), labels).item()


def calibration_error(logits: Tensor, labels: Tensor, bins: int = BINS) -> float:
    """Expected calibration error: the mean gap of confidence and accuracy, over bins of equal width of confidence.

    >>> calibration_error(torch.tensor([[9e9, 0.0], [9e9, 0.0]]), torch.tensor([0, 1]))
    0.5
    """
    confidence, predicted = logits.double().softmax(1).max(1)
    gap = (predicted == labels).double() - confidence
    places = (confidence * bins).ceil().long().clamp(1, bins) - 1
    return torch.zeros(bins, dtype=gap.dtype).index_add_(0, places, gap).abs().sum().item() / len(labels)
