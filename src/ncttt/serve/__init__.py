"""Serving: a classifier behind HTTP that adapts to each of its streams of images, and a client for it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
