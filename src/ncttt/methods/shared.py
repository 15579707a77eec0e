"""What several methods share: what adaptation moves, passes of a method's own, the entropy of predictions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile

from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Branched
from ncttt.model.norm import looking, statistics


def moved_parameters(model: Branched, moves: str) -> dict[str, nn.Parameter]:
    """The classifier's parameters that `moves` names, all of which come before the tap.

    `encoder`: all that the features depend on; `first_half`: those of the first half of its layers; `norm`: scale and
    shift of its normalisation layers; a layer's name: everything up to and including it.
    """
    encoder = model.encoder_parameters()
    if moves == "encoder":
        return encoder
    if moves == "first_half":
        return first_half(encoder)
    if moves == "norm":
        return {name: p for name, p in model.norm_parameters().items() if name in encoder}
    moved = model.encoder_parameters(moves)
    if not moved.keys() <= encoder.keys():
        raise InputError(f"moves={moves!r} lies after the tapped {model.layer!r}, which cannot move it")
    return moved


def first_half(encoder: Mapping[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    """Half of the weights, in the order in which the network defines them, with the scales and shifts between them.

    Weights are parameters of two dimensions and more: those of convolutions and linear layers.
    """
    weights = [name for name, parameter in encoder.items() if parameter.ndim > 1]
    behind = weights[(len(weights) + 1) // 2 :][:1]
    return dict(takewhile(lambda item: item[0] not in behind, encoder.items()))


@contextmanager
def own_pass(model: Branched) -> Iterator[None]:
    """Let the encoder run inside the `with` block as it will at test time, and leave its running statistics alone.

    While training they must describe the images of the classifier, not rotated or recoloured ones. A classifier in
    training mode uses the batch's statistics; one in evaluation mode those that the method takes gradients with.
    """
    layers = model.batch_norms()
    training = any(layer.training for layer in layers)
    policy = "batch" if training else looking(model.method.gradient_norm)
    with statistics(layers, policy if layers else "source"):
        yield


def mean_entropy(logits: Tensor) -> Tensor:
    """The mean over images of the entropy, in nats, of the softmax of logits `(B, classes)`."""
    log_probabilities = logits.log_softmax(1)
    return -(log_probabilities.exp() * log_probabilities).sum(1).mean()
