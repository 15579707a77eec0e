"""What adaptation moves, chosen apart from where its loss reads."""

from torch import nn

from ncttt.branched import Branched
from ncttt.errors import InputError


def moved_parameters(model: Branched, moves: str) -> dict[str, nn.Parameter]:
    """The classifier's parameters that `moves` names, all of which come before the tap.

    `encoder`: all that the features depend on; `norm`: scale and shift of normalisation layers among them; a layer's
    name: everything up to and including it.
    """
    encoder = model.encoder_parameters()
    if moves == "encoder":
        return encoder
    if moves == "norm":
        return {name: p for name, p in model.norm_parameters().items() if name in encoder}
    moved = model.encoder_parameters(moves)
    if not moved.keys() <= encoder.keys():
        raise InputError(f"moves={moves!r} lies after the tapped {model.layer!r}, which cannot move it")
    return moved
