"""Files of images: fetched, checked, unpacked and read; what the data sets and the corruptions stand on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
