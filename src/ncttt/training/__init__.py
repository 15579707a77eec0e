"""Joint source training: the classifier and the auxiliary branch learn together, in one pass through the encoder."""

from ncttt.recipe import Recipe
from ncttt.training.figures import Epoch
from ncttt.training.loop import train
from ncttt.training.watching import Observer

__all__ = ["Epoch", "Observer", "Recipe", "train"]
