from .cases import CLASSIFIERS
from .contract import check_method

__all__ = ["CLASSIFIERS", "check_method"]
