"""The 15 corruptions of CIFAR-C / ImageNet-C and the 4 extra ones, for batches or for whole sets on disk."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
