"""Every figure of the gallery, drawn once for all tests; those that need data have some made by hand."""

from functools import cache

import figure_data
from matplotlib.figure import Figure

from ncttt.report import figures

STREAM = figure_data.stream_rows("random+visits(2)", domains=30)
EVERY = {
    "method": figures.draw_method,
    "posterior": figures.draw_posterior,
    "samples": figures.draw_samples,
    "field": figures.draw_field,
    "beta": figures.draw_beta,
    "iterations": lambda: figures.draw_iterations(figure_data.rows_of_a_benchmark()),
    "tsne": lambda: figures.draw_tsne(*figure_data.mapped(), "20 iterations of NC-TTT"),
    "layers": lambda: figures.draw_layers(figure_data.trials()),
    "attribution": lambda: figures.draw_attribution(figure_data.rows_of_a_benchmark()),
    "shift": lambda: figures.draw_shift(figure_data.rows_of_a_benchmark()),
    "corruptions": lambda: figures.draw_corruptions(*figure_data.tiles()),
    "reliability": lambda: figures.draw_reliability(figure_data.confidences()),
    "drift": lambda: figures.draw_drift(figure_data.drift_records()),
    "stream": lambda: figures.draw_stream(STREAM, figure_data.right_of(STREAM)),
    "batch_sizes": lambda: figures.draw_batch_sizes(figure_data.batch_size_rows()),
}


@cache
def page(name: str) -> Figure:
    """A figure by its name."""
    return EVERY[name]()
