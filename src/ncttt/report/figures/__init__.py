"""The figures: each a function that returns a matplotlib Figure.

Those in FIGURES explain the method and are drawn from its mathematics alone; the others are drawn from what they are
given: rows of a benchmark, trials of a search, arrays. `ncttt.report.gallery` lists them all.

>>> sorted(FIGURES)
['beta', 'field', 'method', 'posterior', 'samples']
"""

from collections.abc import Callable

from matplotlib.figure import Figure

from ncttt.report.figures.attribution import draw_attribution
from ncttt.report.figures.beta import draw_beta
from ncttt.report.figures.corruptions import draw_corruptions
from ncttt.report.figures.field import draw_field
from ncttt.report.figures.iterations import draw_iterations
from ncttt.report.figures.layers import draw_layers
from ncttt.report.figures.method import draw_method
from ncttt.report.figures.posterior import draw_posterior
from ncttt.report.figures.reliability import draw_reliability
from ncttt.report.figures.samples import draw_samples
from ncttt.report.figures.shift import draw_shift
from ncttt.report.figures.style import save
from ncttt.report.figures.tsne import draw_tsne

__all__ = [
    "FIGURES",
    "draw_attribution",
    "draw_beta",
    "draw_corruptions",
    "draw_field",
    "draw_iterations",
    "draw_layers",
    "draw_method",
    "draw_posterior",
    "draw_reliability",
    "draw_samples",
    "draw_shift",
    "draw_tsne",
    "save",
]

FIGURES: dict[str, Callable[[], Figure]] = {
    "method": draw_method,
    "posterior": draw_posterior,
    "samples": draw_samples,
    "field": draw_field,
    "beta": draw_beta,
}
