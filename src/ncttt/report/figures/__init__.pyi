from .attribution import draw_attribution
from .batch_sizes import draw_batch_sizes
from .beta import draw_beta
from .corruptions import draw_corruptions
from .drift import draw_drift
from .field import draw_field
from .gallery import FIGURES, Drawing, draw_figures
from .iterations import draw_iterations
from .layers import draw_layers
from .method import draw_method
from .posterior import draw_posterior
from .reliability import draw_reliability
from .samples import draw_samples
from .shared.request import Request
from .shared.style import save
from .shift import draw_shift
from .stream import draw_stream
from .tsne import draw_tsne

__all__ = [
    "FIGURES",
    "Drawing",
    "Request",
    "draw_attribution",
    "draw_batch_sizes",
    "draw_beta",
    "draw_corruptions",
    "draw_drift",
    "draw_field",
    "draw_figures",
    "draw_iterations",
    "draw_layers",
    "draw_method",
    "draw_posterior",
    "draw_reliability",
    "draw_samples",
    "draw_shift",
    "draw_stream",
    "draw_tsne",
    "save",
]
