from .checkpoint import load, save
from .shipped import HOME, info, names, ship

__all__ = [
    "HOME",
    "info",
    "load",
    "names",
    "save",
    "ship",
]
