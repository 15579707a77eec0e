"""The methods: one file or folder each, with its name and its place in tables. What several share is in `shared`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
