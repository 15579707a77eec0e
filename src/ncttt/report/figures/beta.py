"""Expected label of an out-view (Fig. 5).

The label against the ratio of the two scales. The paper's formula lacks a factor: the expected squared length of the
noise is dim sigma_out^2. Put right, it is the label of the expected logit, which is still not the expected label; that
one comes from an integral, and from sampling.
"""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ncttt import noise
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import BLUE, GREY, INK, ORANGE, VERMILION, new_figure, styled

PLACE = 5
DIM, DIMS, TOLERANCE = 16, (8, 16, 64), 0.05
BETAS = (1.0, 3.0)
SAMPLED = (1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75)
CLAIM = 1.5  # the paper finds the label near zero beyond it; the true one is 0.19 there


def make(_: Request) -> Figure:
    """The figure, which needs nothing."""
    return draw_beta()


@styled
def draw_beta() -> Figure:
    """Expected label as printed, corrected and true; and the true one by dimension, with the beta to choose."""
    betas = torch.linspace(*BETAS, 161, dtype=torch.float64)
    figure = new_figure(height=3.7)
    formulas, dimensions = figure.subplots(1, 2)
    _draw_formulas(formulas, betas)
    _draw_dimensions(dimensions, betas)
    for axes in (formulas, dimensions):
        axes.set(
            xlabel=r"$\beta = \sigma_\mathrm{out}\, /\, \sigma_\mathrm{in}$", xlim=BETAS, xticks=[1, 1.5, 2, 2.5, 3]
        )
        axes.set_ylabel("expected label of an out-view")
        axes.grid()
    return figure


def sampled_label(beta: float, dim: int, count: int = 20_000, seed: int = 0) -> float:
    """Mean soft label of `count` out-views, drawn."""
    generator = torch.Generator().manual_seed(seed)
    vectors = noise.Gaussian().sample(torch.empty(count, dim, dtype=torch.float64), beta, generator)
    return noise.soft_label(vectors, 1.0, beta).mean().item()


def _draw_formulas(axes: Axes, betas: Tensor) -> None:
    curves = {
        "as printed": (noise.expected_label_as_printed, VERMILION, "--"),
        "corrected": (noise.expected_label_corrected, INK, "-."),
        "true, by integration": (noise.expected_label, BLUE, "-"),
    }
    for name, (label, color, line) in curves.items():
        axes.plot(betas.numpy(), label(betas, DIM).numpy(), line, color=color, label=name)
    labels = [sampled_label(beta, DIM) for beta in SAMPLED]
    axes.plot(SAMPLED, labels, "o", color="white", markeredgecolor=INK, markersize=5, label="true, by sampling")
    axes.axvline(CLAIM, color=GREY, lw=1, ls=":")
    axes.text(CLAIM + 0.04, 0.82, rf"the paper: near zero for $\beta > {CLAIM:g}$", va="center")
    axes.set(title=f"three formulas, {DIM} dimensions", ylim=(-0.02, 1.04))
    axes.legend(loc="center right")


def _draw_dimensions(axes: Axes, betas: Tensor) -> None:
    for dim, color, line in zip(DIMS, (ORANGE, BLUE, INK), ("--", "-", "-."), strict=True):
        axes.plot(betas.numpy(), noise.expected_label(betas, dim).numpy(), line, color=color, label=f"{dim} dimensions")
        smallest = noise.smallest_beta(dim, TOLERANCE)
        axes.plot(smallest, TOLERANCE, "o", color=color, markeredgecolor=INK, markersize=6)
        axes.annotate(f"{smallest:.2f}", (smallest, TOLERANCE), (5, 5), textcoords="offset points")
    axes.axhline(TOLERANCE, color=GREY, lw=1)
    axes.set(title=f"the true one, and where it is {TOLERANCE:g}", yscale="log", ylim=(1e-3, 1))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(loc="upper right")
