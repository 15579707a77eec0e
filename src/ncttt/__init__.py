"""ncttt: test-time training of image classifiers.

Everything is imported on first use, so that the command line answers at once and adapting a model needs torch alone.
"""

import lazy_loader

__version__ = "0.3.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
