"""What rows tell: tables, a page and figures, and the paper's numbers next to ours. Tables and pages need no torch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
