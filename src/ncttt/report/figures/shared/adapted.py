"""What a model gives for images before and after adaptation: features to map, confidences to hold against the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from ncttt.adapt.adapter import Adapter
from ncttt.benchmark.draws import ImageDraw
from ncttt.data import ImageSet, batches, load
from ncttt.data.class_names import check_same_classes
from ncttt.data.corruptions import corrupt
from ncttt.data.files.folders import IMAGE_SIZE
from ncttt.methods import Method
from ncttt.methods.settings import method_for
from ncttt.model.branched import Branched
from ncttt.model.features import penultimate_features
from ncttt.model.norm import standing, statistics
from ncttt.report.figures.shared.request import Request
from ncttt.zoo import checkpoint

BATCH = 100


class Subject(NamedTuple):
    """A model, the method to adapt it with, and the corrupted images that a benchmark would show it."""

    model: Branched
    method: Method
    data: ImageSet


def subject_of(request: Request) -> Subject:
    """What a request says of model, method and images; by default the zoo's for NC-TTT on this data."""
    name = request.model or f"{request.data}-small-ncttt"
    model = checkpoint.load(name)
    method = method_for(model.method, request.method)
    size: dict[str, Any] = {"image_size": (model.input_shape or (IMAGE_SIZE,))[-1], "resize": model.resize}
    clean = load(request.data, "test", root=request.root, **size)
    check_same_classes(model.classes, clean.classes, name, request.data)
    drawn = ImageDraw(request.data, "test", request.images, root=request.root, **size).read()
    options = {"indices": drawn.places, "constants": request.constants}
    images = corrupt(np.asarray(drawn.images[:]), request.corruption, request.severity, **options)
    return Subject(model, method, replace(clean.subset(drawn.places), images=images))


class Confidences(NamedTuple):
    """The probability that each prediction was given, and whether it was right: float and bool `(N,)`."""

    confidence: np.ndarray
    right: np.ndarray


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
        with torch.no_grad(), statistics(adapter.model.batch_norms(), standing(adapter.norm[1])):
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
    return Confidences(confidence.numpy(), predicted.numpy() == data.labels_for("reliability"))
