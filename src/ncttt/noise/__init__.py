"""The mathematics of noise contrast: noise families, soft labels, the choice of their scales, and the KDE behind it.

Equation numbers are those of the NC-TTT paper. A noise vector has `dim` independent coordinates in the last axis;
`sigma` is always the standard deviation of one coordinate, in every family, so that families can be exchanged.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
