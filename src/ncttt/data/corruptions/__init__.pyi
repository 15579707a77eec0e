from .apply import corrupt
from .generation import generate
from .metadata import FORMAT
from .registry import (
    CLEAN,
    CORRUPTIONS,
    EXTRA,
    SEVERITIES,
    Corruption,
    corruption,
    expand_corruptions,
    table_for,
)

__all__ = [
    "CLEAN",
    "CORRUPTIONS",
    "EXTRA",
    "FORMAT",
    "SEVERITIES",
    "Corruption",
    "corrupt",
    "corruption",
    "expand_corruptions",
    "generate",
    "table_for",
]
