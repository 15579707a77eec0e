"""The figures: each a function that returns a matplotlib Figure.

Those in FIGURES explain the method and are drawn from its mathematics alone; the others are drawn from what they are
given: rows of a benchmark, trials of a search, arrays. `ncttt.report.gallery` lists them all.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
