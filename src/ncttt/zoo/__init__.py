"""Trained models that ship with the package, a folder each, and saving and loading models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
