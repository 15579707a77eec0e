"""Grids of methods x scenarios x protocols x seeds, measured once, kept as rows, compared with intervals."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
