"""Layer against scale of noise (Fig. 8).

Accuracy for each layer of the branch and each scale of its noise. The paper shows test-time accuracy. Here it is that
of a tuning on validation images, unless the trials name an exception, which is printed below; next to it stands what
the steps gave over batch statistics on the same model: a layer may be good because its model is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.report.figures.shared.request import Request, Trial
from ncttt.report.figures.shared.style import GAIN, INK, PROBABILITY, new_figure, styled
from ncttt.report.table import average

PLACE = 8
NEEDS = "trials"
Cell = tuple[float, str]  # a number and how it is written
LAYER, SEED = "layer", "recipe.seed"
SIGMAS = {"method_settings.sigma_in": r"$\sigma_\mathrm{in}$", "method_settings.sigma_out": r"$\sigma_\mathrm{out}$"}
DARK = 0.55  # above this luminance letters are dark


def make(request: Request) -> Figure:
    """The figure of the trials."""
    return draw_layers(request.read_trials, request.exception)


@styled
def draw_layers(trials: Iterable[Trial], exception: str | None = None) -> Figure:
    """Two maps with numbers, layers down and scales across; of each pair the trial with the best accuracy.

    A star marks a gain whose interval leaves out zero.

    A trial is what `ncttt tune --json` lists under `trials`: `settings` with `layer` and with one scale that varies,
    `method_settings.sigma_in` or `sigma_out`, or both if their ratio is the same; `accuracy`; `gain` with `mean`,
    `low`, `high`, all as parts of one. Trainings with several seeds are averaged, and have no star.
    """
    trials = over_seeds(trials)
    scale = scale_of(trials)
    best = best_of_pairs(trials, scale)
    layers, sigmas = sorted({layer for layer, _ in best}), sorted({sigma for _, sigma in best})
    figure = new_figure(height=0.55 * len(layers) + 1.5)
    accuracy, gain = figure.subplots(1, 2, sharey=True)
    most = max(0.0001, *(abs(trial["gain"]["mean"]) for trial in best.values()))
    tiles = [[best.get((layer, sigma)) for sigma in sigmas] for layer in layers]
    _draw(accuracy, tiles, _accuracy, PROBABILITY, Normalize())
    _draw(gain, tiles, _gain, GAIN, Normalize(-100 * most, 100 * most))
    accuracy.set_title("accuracy after adaptation, %")
    gain.set_title("gain of the steps, percentage points")
    for axes in (accuracy, gain):
        axes.set_xticks(range(len(sigmas)), labels=[f"{sigma:g}" for sigma in sigmas])
        axes.set_yticks(range(len(layers)), labels=layers)
        axes.set_xlabel(SIGMAS[scale])
        axes.tick_params(length=0)
    accuracy.set_ylabel("layer of the branch")
    if exception:
        figure.supxlabel(f"Exception: {exception}.", fontsize="small", wrap=True)
    return figure


def over_seeds(trials: Iterable[Trial]) -> list[Trial]:
    """Trials that differ in the seed of their training alone, averaged."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        settings = {name: value for name, value in trial["settings"].items() if name != SEED}
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append({**trial, "settings": settings})
    return [_mean(group) if len(group) > 1 else group[0] for group in groups.values()]


def _mean(trials: Sequence[Trial]) -> Trial:
    gain = average(trial["gain"]["mean"] for trial in trials)
    accuracy = average(trial["accuracy"] for trial in trials)
    # Intervals of single trainings say nothing about the mean of several.
    return {**trials[0], "accuracy": accuracy, "gain": {"mean": gain, "low": -math.inf, "high": math.inf}}


def scale_of(trials: Sequence[Trial]) -> str:
    """The setting of the noise that the trials vary, beside the layer."""
    every = [trial["settings"] for trial in trials]
    varied = [name for name in SIGMAS if len({settings.get(name) for settings in every}) > 1]
    if len(varied) == 2 and len({round(s[varied[1]] / s[varied[0]], 6) for s in every if s.get(varied[0])}) == 1:
        varied = varied[:1]  # the other is tied to it
    if not every or len(varied) != 1 or not all({LAYER, varied[0]} <= settings.keys() for settings in every):
        tried = ", ".join(every[0]) if every else "no trials"
        raise InputError(
            f"the tuning must vary {LAYER} and one of {' and '.join(SIGMAS)}, as `ncttt tune --config layer-sigma` "
            f"does; found {tried}"
        )
    return varied[0]


def best_of_pairs(trials: Iterable[Trial], scale: str) -> dict[tuple[str, float], Trial]:
    """The trial with the highest accuracy for each layer and value of the scale."""
    best: dict[tuple[str, float], Trial] = {}
    for trial in sorted(trials, key=lambda trial: trial["accuracy"]):
        best[trial["settings"][LAYER], trial["settings"][scale]] = trial
    return best


def _accuracy(trial: Trial) -> Cell:
    return 100 * trial["accuracy"], f"{100 * trial['accuracy']:.1f}"


def _gain(trial: Trial) -> Cell:
    gain = trial["gain"]
    known = gain["low"] is not None  # else there were too few batches for an interval
    star = " *" if known and (gain["low"] > 0 or gain["high"] < 0) else ""
    return 100 * gain["mean"], f"{100 * gain['mean']:+.2f}{star}"


def _draw(
    axes: Axes,
    tiles: Sequence[Sequence[Trial | None]],
    read: Callable[[Trial], Cell],
    colours: Colormap,
    norm: Normalize,
) -> None:
    """A coloured tile with its number for each trial, the highest bold; an empty one where nothing was tried."""
    cells = [[(np.nan, "") if trial is None else read(trial) for trial in line] for line in tiles]
    values = np.array([[value for value, _ in line] for line in cells])
    axes.imshow(values, cmap=colours, norm=norm, aspect="auto")
    for (line, column), value in np.ndenumerate(values):
        ink = INK if np.isnan(value) or _luminance(colours(norm(value))) > DARK else "white"
        weight = "bold" if value == np.nanmax(values) else "normal"
        axes.text(column, line, cells[line][column][1], ha="center", va="center", color=ink, weight=weight)
    axes.spines[:].set_visible(False)


def _luminance(colour: Sequence[float]) -> float:
    return float(np.dot(colour[:3], (0.299, 0.587, 0.114)))
