"""The figures: a file each, with a function that returns a matplotlib Figure drawn from what it is given.

`gallery` finds the files, lists them, and draws them from a request.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
