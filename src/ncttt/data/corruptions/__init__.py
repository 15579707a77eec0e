"""The 15 corruptions of CIFAR-C / ImageNet-C and the 4 extra ones, for batches or for whole sets on disk."""

from ncttt.data.corruptions.apply import corrupt
from ncttt.data.corruptions.constants import CORRUPTIONS, EXTRA
from ncttt.data.corruptions.generation import generate

__all__ = ["CORRUPTIONS", "EXTRA", "corrupt", "generate"]
