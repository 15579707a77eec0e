from .checkpoint import load, save
from .sharing import pull, push
from .shipped import HOME, info, names, ship

__all__ = [
    "HOME",
    "info",
    "load",
    "names",
    "pull",
    "push",
    "save",
    "ship",
]
