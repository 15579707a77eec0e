"""The demonstration: NC-TTT and its rivals from one start, on clean and on shifted images, with and without steps."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
