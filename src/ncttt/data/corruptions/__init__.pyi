from .apply import corrupt
from .constants import CLEAN, CORRUPTIONS, EXTRA
from .generation import generate

__all__ = [
    "CLEAN",
    "CORRUPTIONS",
    "EXTRA",
    "corrupt",
    "generate",
]
