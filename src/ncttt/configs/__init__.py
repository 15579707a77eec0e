"""The configurations that ship, a folder for each command that reads them, and how one is found by its name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
