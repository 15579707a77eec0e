from .checkpoint import load, save
from .shipped import HOME, names, ship

__all__ = [
    "HOME",
    "load",
    "names",
    "save",
    "ship",
]
