"""The paper's tables and figures, each by one command: data, trainings, measurements, results beside the paper's."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
