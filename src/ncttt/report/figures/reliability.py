"""Confidence against accuracy.

Is a prediction right as often as it says, before and after adaptation?
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.methods import Source
from ncttt.report.figures.shared.adapted import Confidences, confidences_of, subject_of
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import BLUE, GREY, INK, VERMILION, legend_below, new_figure, styled
from ncttt.report.names import spelled_method

PLACE = 12
NEEDS = "model"
BINS = 15


class Bins(NamedTuple):
    """Images, mean confidence and accuracy in each bin of equal width, `(bins,)`; NaN where a bin is empty."""

    images: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap of confidence and accuracy, weighted by images."""
        gaps = np.abs(self.accuracy - self.confidence)
        return float(np.nansum(gaps * self.images) / self.images.sum())


def make(request: Request) -> Figure:
    """The predictions of images as the model is, and after adaptation."""
    subject = subject_of(request)
    after = confidences_of(subject.model, subject.method, subject.data, request.steps)
    before = confidences_of(subject.model, Source(), subject.data)
    return draw_reliability({"before": before, f"after {spelled_method(subject.method.name)}": after})


@styled
def draw_reliability(confidences: Mapping[str, Confidences]) -> Figure:
    """A diagram for each name, such as before and after: accuracy by confidence above, share of images below."""
    figure = new_figure(height=4.4)
    panels = figure.subplots(2, len(confidences), squeeze=False, sharex=True, sharey="row", height_ratios=[3, 1])
    for (above, below), (name, predictions) in zip(panels.T, confidences.items(), strict=True):
        bins = binned(predictions)
        _draw_gaps(above, bins)
        above.set_title(f"{name}: {100 * predictions.right.mean():.1f} % right, ECE {bins.error:.3f}")
        below.bar(_lefts(), bins.images / bins.images.sum(), 1 / BINS, align="edge", color=GREY, edgecolor="white")
        below.set(xlabel="confidence", xlim=(0, 1), ylim=(0, 1), yticks=[0, 1])
    panels[0, 0].set_ylabel("accuracy")
    panels[1, 0].set_ylabel("share")
    legend_below(figure, *panels[0, 0].get_legend_handles_labels())
    return figure


def binned(predictions: Confidences, bins: int = BINS) -> Bins:
    """Predictions in bins of equal width, each with its upper end, as a row's `ece` takes them.

    >>> binned(Confidences(np.array([1.0, 0.75]), np.array([True, False])), bins=2).error
    0.375
    """
    confidence, right = (np.asarray(part, dtype=float) for part in predictions)
    if not len(confidence) or confidence.shape != right.shape or not np.all((confidence >= 0) & (confidence <= 1)):
        raise InputError(f"expected confidences in [0, 1] and as many answers; found {len(confidence)}, {len(right)}")
    places = np.clip(np.ceil(confidence * bins).astype(int), 1, bins) - 1
    images = np.bincount(places, minlength=bins)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(places, weights=part, minlength=bins) / images for part in (confidence, right)]
    return Bins(images, *means)


def _draw_gaps(axes: Axes, bins: Bins) -> None:
    axes.bar(_lefts(), bins.accuracy, 1 / BINS, align="edge", color=BLUE, edgecolor="white", label="accuracy")
    axes.plot([0, 1], [0, 1], "--", color=INK, lw=1, label="as often as it says")
    look = {"color": VERMILION, "markeredgecolor": INK, "markeredgewidth": 0.6}
    axes.plot(bins.confidence, bins.accuracy, "o", markersize=5, label="mean confidence of a bin", **look)
    axes.set(ylim=(0, 1.02))
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _lefts() -> np.ndarray:
    return np.arange(BINS) / BINS
