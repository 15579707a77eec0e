"""Checks for a method of one's own, with the small classifiers that they run on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
