"""A second set of values for tensors of a classifier: a teacher's weights, or statistics of a method's own.

They are tensors of a method's memory, so that a reset, the guard and a saved state treat them like all that moves. The
network itself is there once: a pass borrows the values.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ncttt.model.branched import Branched
from ncttt.model.moments import batch_moments, values_of
from ncttt.model.taps import check_eager

STATISTICS = ("running_mean", "running_var")


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


def statistics_of(model: Branched) -> dict[str, Tensor]:
    """Running mean and variance of the classifier's BatchNorm layers, by name."""
    return {f"{name}.{key}": layer.get_buffer(key) for name, layer in _batch_norms(model).items() for key in STATISTICS}


def moving_pass(model: Branched, values: Values, images: Tensor, momentum: float) -> Tensor:
    """Logits `(B, classes)` of a pass that borrows values, whose statistics then follow those of the images.

    Which statistics normalise in the pass is the policy's affair. A layer that runs twice moves twice.
    """
    borrowed = {name: value.clone() for name, value in values.named().items()}  # the gradient needs them as they were
    with _moments_of_inputs(model) as seen:
        logits = logits_with(model, borrowed, images)
    for moments in seen:
        values.follow(moments, momentum)
    return logits


@contextmanager
def _moments_of_inputs(model: Branched) -> Iterator[list[dict[str, Tensor]]]:
    """Fill a list, by a pass inside the `with` block, with the batch's moments before each BatchNorm, as they run."""
    seen: list[dict[str, Tensor]] = []
    names = {layer: name for name, layer in _batch_norms(model).items()}

    def look(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        features = inputs[0].detach()
        if values_of(features) > 1:
            moments = (moment.flatten() for moment in batch_moments(features))
            seen.append({f"{names[layer]}.{key}": m for key, m in zip(STATISTICS, moments, strict=True)})

    # First of all hooks: that of a policy changes what the layer is given.
    handles = [layer.register_forward_pre_hook(look, prepend=True) for layer in names]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _batch_norms(model: Branched) -> dict[str, nn.Module]:
    layers = set(model.batch_norms())
    return {name: layer for name, layer in model.classifier.named_modules() if layer in layers}


def cross_entropies(logits: Tensor, taught: Tensor) -> Tensor:
    """The cross-entropy of each image's prediction with a teacher's: two times logits `(B, classes)` give `(B,)`."""
    return -(taught.softmax(1) * logits.log_softmax(1)).sum(1)
