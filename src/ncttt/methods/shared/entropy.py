"""The entropy of predictions, which several methods lower."""

from torch import Tensor


def mean_entropy(logits: Tensor) -> Tensor:
    """The mean over images of the entropy, in nats, of the softmax of logits `(B, classes)`."""
    log_probabilities = logits.log_softmax(1)
    return -(log_probabilities.exp() * log_probabilities).sum(1).mean()
