"""Joint source training: the classifier and the auxiliary branch learn together, in one pass through the encoder."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
