"""What adaptation moves, chosen apart from where its loss reads."""

from collections.abc import Mapping
from itertools import takewhile

from torch import nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Branched


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
