"""The figures that explain the method, drawn from its mathematics: each a function that returns a matplotlib Figure.

>>> sorted(FIGURES)
['beta', 'field', 'method', 'posterior', 'samples']
"""

from collections.abc import Callable

from matplotlib.figure import Figure

from ncttt.report.figures.beta import draw_beta
from ncttt.report.figures.field import draw_field
from ncttt.report.figures.method import draw_method
from ncttt.report.figures.posterior import draw_posterior
from ncttt.report.figures.samples import draw_samples
from ncttt.report.figures.style import save

__all__ = ["FIGURES", "draw_beta", "draw_field", "draw_method", "draw_posterior", "draw_samples", "save"]

FIGURES: dict[str, Callable[[], Figure]] = {
    "method": draw_method,
    "posterior": draw_posterior,
    "samples": draw_samples,
    "field": draw_field,
    "beta": draw_beta,
}
