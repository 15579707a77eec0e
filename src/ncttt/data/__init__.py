"""Data sets as uint8 images, labels and class names: `load` one by name, draw `batches` from it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
