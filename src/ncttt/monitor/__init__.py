"""The drift monitor: how odd images look to a classifier, one by one and over a window, and when to raise an alarm."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
