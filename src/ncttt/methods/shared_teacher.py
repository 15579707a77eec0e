"""A second set of values for tensors of a classifier: a teacher's weights, or statistics of a method's own.

They are tensors of a method's memory, so that a reset, the guard and a saved state treat them like all that moves. The
network itself is there once: a pass borrows the values.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ncttt.model.branched import Branched
from ncttt.model.taps import check_eager


class Values(nn.Module):
    """Copies of tensors, known by the names that these have in the classifier."""

    def __init__(self, tensors: Mapping[str, Tensor]):
        super().__init__()
        self._names = tuple(tensors)
        for number, tensor in enumerate(tensors.values()):  # a buffer's own name may have no dots
            self.register_buffer(f"value{number}", tensor.detach().clone())

    def named(self) -> dict[str, Tensor]:
        """The values by name."""
        return dict(zip(self._names, self.buffers(), strict=True))

    def follow(self, tensors: Mapping[str, Tensor], rate: float) -> None:
        """Move those that are named towards other values, in place, as a moving mean does."""
        own = self.named()
        for name, tensor in tensors.items():
            own[name].lerp_(tensor.detach().to(own[name]), rate)


def logits_with(model: Branched, values: Mapping[str, Tensor], images: Tensor) -> Tensor:
    """Logits `(B, classes)` of a model whose classifier has other values in some of its tensors, for one pass."""
    check_eager(model.classifier)
    return torch.func.functional_call(model, {f"classifier.{name}": value for name, value in values.items()}, (images,))


def cross_entropies(logits: Tensor, taught: Tensor) -> Tensor:
    """The cross-entropy of each image's prediction with a teacher's: two times logits `(B, classes)` give `(B,)`."""
    return -(taught.softmax(1) * logits.log_softmax(1)).sum(1)
