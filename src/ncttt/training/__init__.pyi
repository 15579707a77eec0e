from .figures import Epoch
from .loop import train
from .recipe import Recipe
from .watching import Observer

__all__ = [
    "Epoch",
    "Observer",
    "Recipe",
    "train",
]
