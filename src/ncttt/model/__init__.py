"""A classifier and how it is read: the branch on it, taps, BatchNorm statistics, snapshots, certainty."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
