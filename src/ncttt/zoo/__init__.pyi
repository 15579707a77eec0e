from .checkpoint import load, save
from .inventory import info
from .shipped import HOME, names, ship

__all__ = [
    "HOME",
    "info",
    "load",
    "names",
    "save",
    "ship",
]
