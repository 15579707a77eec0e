"""Joint source training: the classifier and the auxiliary branch learn together, in one pass through the encoder."""

from ncttt.training.loop import Epoch, train

__all__ = ["Epoch", "train"]
