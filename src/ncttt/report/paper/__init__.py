"""The numbers of the NC-TTT paper's seven tables, what is known to be wrong with them, and the tables themselves."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
