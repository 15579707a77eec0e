from .apply import corrupt
from .constants import CORRUPTIONS, EXTRA
from .generation import generate

__all__ = [
    "CORRUPTIONS",
    "EXTRA",
    "corrupt",
    "generate",
]
