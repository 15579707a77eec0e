"""Features before and after (Fig. 7).

Features before and after adaptation on a plane, by t-SNE. Both go into one map: two maps would differ by
chance, and the difference would look like adaptation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.methods import Source
from ncttt.report.figures.shared.adapted import features_of, subject_of
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    legend_below,
    new_figure,
    styled,
)
from ncttt.report.names import spelled_method

PLACE = 7
NEEDS = "model"
# Every class has a marker of its own, so that no reader depends on ten colours.
LOOKS = (
    ("o", BLUE), ("s", ORANGE), ("^", GREEN), ("D", VERMILION), ("v", SKY),
    ("P", PURPLE), ("X", INK), ("*", YELLOW), ("<", GREY), ("p", "#8C5A2B"),
)  # fmt: skip
PERPLEXITY, FEWEST = 30.0, 8
ITERATIONS = 20


class Mapped(NamedTuple):
    """Positions float `(N, 2)` of images on the plane, and the classes int `(N,)` that were predicted for them."""

    positions: np.ndarray
    predicted: np.ndarray


def make(request: Request) -> Figure:
    """The features of images as the model is, and after the iterations of the request."""
    subject = subject_of(request)
    steps = ITERATIONS if request.steps is None else request.steps
    before = features_of(subject.model, Source(), subject.data)
    after = features_of(subject.model, subject.method, subject.data, steps)
    first, second = embed(before.features, after.features)
    title = f"{steps} iterations of {spelled_method(subject.method.name)}"
    shown = Mapped(first, before.predicted), Mapped(second, after.predicted)
    return draw_tsne(*shown, subject.data.labels_for("t-SNE"), subject.data.classes, title)


@styled
def draw_tsne(
    before: Mapped, after: Mapped, labels: np.ndarray, classes: Sequence[str], title: str = "after adaptation"
) -> Figure:
    """Before and after from left to right, coloured by prediction above and by the true class below."""
    if len(classes) > len(LOOKS):
        raise InputError(f"at most {len(LOOKS)} classes can be told apart; found {len(classes)}")
    figure = new_figure(height=8.0)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for column, (name, shown) in enumerate((("before adaptation", before), (title, after))):
        right = 100 * np.mean(shown.predicted == labels)
        _draw(panels[0, column], shown.positions, shown.predicted, classes)
        panels[0, column].set_title(f"{name}\npredictions, {right:.1f} % right")
        _draw(panels[1, column], shown.positions, labels, classes)
        panels[1, column].set_title(f"{name}\ntrue classes")
    handles = {
        name: handle for axes in panels.flat for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    names = [name for name in classes if name in handles]
    legend_below(figure, [handles[name] for name in names], names, columns=5)
    return figure


def embed(before: np.ndarray, after: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positions `(N, 2)` of features `(N, d)` before and after, in one map."""
    from sklearn.manifold import TSNE  # a second, which reading a map does without

    features = np.concatenate([before, after]).astype(np.float64)
    if len(before) != len(after) or len(before) < FEWEST:
        raise InputError(f"t-SNE needs the same {FEWEST} images or more; found {len(before)} and {len(after)}")
    perplexity = min(PERPLEXITY, (len(features) - 1) / 3)
    positions = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(features)
    return positions[: len(before)], positions[len(before) :]


def _draw(axes: Axes, positions: np.ndarray, shown: np.ndarray, classes: Sequence[str]) -> None:
    for number, (name, (marker, color)) in enumerate(zip(classes, LOOKS, strict=False)):
        chosen = positions[shown == number]
        if len(chosen):
            edge = {"edgecolors": "white" if color == INK else INK, "linewidths": 0.4}
            axes.scatter(*chosen.T, s=26, marker=marker, color=color, label=name, **edge)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
