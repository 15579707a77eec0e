"""What a model gives for images before and after adaptation: features to map, confidences to hold against the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from ncttt.adapt.adapter import Adapter
from ncttt.data import ImageSet, batches
from ncttt.methods import Method
from ncttt.model.branched import Branched
from ncttt.model.norm import statistics
from ncttt.model.penultimate import penultimate_features
from ncttt.report.figures.reliability import Confidences

BATCH = 100


class FeaturesOfImages(NamedTuple):
    """The vectors that the last linear layer is given, `(N, d)`, and the classes predicted, int `(N,)`."""

    features: np.ndarray
    predicted: np.ndarray


def features_of(
    model: Branched, method: Method, data: ImageSet, steps: int | None = None, batch_size: int = BATCH
) -> FeaturesOfImages:
    """Features and predictions of images after the method has adapted to each batch of them."""
    # Online, because an episodic adapter has forgotten what it learned by the time it answers.
    adapter = Adapter(model, method, steps=steps, protocol="online")
    features, predicted = [], []
    for images, _ in batches(data, batch_size):
        predicted.append(adapter(images).argmax(1))
        with torch.no_grad(), statistics(adapter.model.batch_norms(), adapter.norm[1]):
            features.append(penultimate_features(adapter.model, images)[1])
        adapter.reset()
    return FeaturesOfImages(torch.cat(features).numpy(), torch.cat(predicted).numpy())


def confidences_of(
    model: Branched, method: Method, data: ImageSet, steps: int | None = None, batch_size: int = BATCH
) -> Confidences:
    """How sure the predictions are after the method has adapted to each batch of images, and whether they are right."""
    adapter = Adapter(model, method, steps=steps)
    logits = torch.cat([adapter(images) for images, _ in batches(data, batch_size)])
    confidence, predicted = logits.double().softmax(1).max(1)
    return Confidences(confidence.numpy(), predicted.numpy() == data.labels)
