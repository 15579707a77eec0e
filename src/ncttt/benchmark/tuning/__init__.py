"""Choosing settings on validation alone: held-out training images under the corruptions that are not tested on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
