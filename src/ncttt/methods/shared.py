"""What several methods share: what adaptation moves, passes of their own, the entropy of predictions, checks."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from math import log
from typing import Literal

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Branched
from ncttt.model.modes import evaluating
from ncttt.model.norm import looking, statistics

EntropyOf = Literal["each", "mean"]  # of the predictions for each copy of an image, or of their mean

# What to do where a network has no normalisation layers with scale and shift.
WITHOUT_NORM = "use a method that moves all weights, such as MEMO or CoTTA, or none, such as LAME or T3A"


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


def every_parameter(model: Branched) -> dict[str, nn.Parameter]:
    """All of the classifier's parameters, by name; an `InputError` if it has none."""
    moved = {name: p for name, p in model.classifier.named_parameters() if p.is_floating_point()}
    if not moved:
        raise InputError(f"there is nothing to move: {type(model.classifier).__name__} has no parameters")
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


def mean_entropy(logits: Tensor, copies: int = 1) -> Tensor:
    """The mean over images of the entropy, in nats, of the softmax of logits `(B, classes)`.

    Where the batch is so many `copies` of the images, one after another, it is the entropy of the mean prediction for
    the copies of an image, which also falls as they come to agree.
    """
    if copies == 1:
        return entropies(logits).mean()
    return marginal_entropies(logits.unflatten(0, (copies, -1)).transpose(0, 1)).mean()


def marginal_entropies(logits: Tensor) -> Tensor:
    """The entropy `(B,)` of the mean over views of the softmax of logits `(B, views, classes)`."""
    mean = logits.log_softmax(2).logsumexp(1) - log(logits.shape[1])
    return -(mean.exp() * mean).sum(1)


def entropies(logits: Tensor) -> Tensor:
    """The entropy, in nats, of the softmax of each image's logits: `(B, classes)` gives `(B,)`."""
    log_probabilities = logits.log_softmax(1)
    return -(log_probabilities.exp() * log_probabilities).sum(1)


@torch.inference_mode(False)
@torch.no_grad()
def number_of_classes(model: Branched) -> int:
    """How many classes a model tells apart, for a memory that is made before any image has come.

    It is asked, where the shape of its images is known; of a plain module the last linear layer says it.
    """
    if model.classes is not None:
        return len(model.classes)
    if model.input_shape is not None:
        with evaluating(model.classifier):
            return model(torch.zeros(2, *model.input_shape).to(model.mean)).shape[1]
    linear = [part for part in model.classifier.modules() if isinstance(part, nn.Linear)]
    if not linear:
        name = type(model.method).__name__
        raise InputError(
            f"{name} must know the number of classes, which a plain {type(model.classifier).__name__} without a linear "
            f"layer does not tell: model = ncttt.attach(net, None, ncttt.{name}(), images), then ncttt.Adapter(model)"
        )
    return linear[-1].out_features


def check_numbers(method: object, **least: float) -> None:
    """Raise an `InputError` unless these settings are finite numbers of at least so much.

    >>> from types import SimpleNamespace
    >>> check_numbers(SimpleNamespace(margin=0.4), margin=0.0)
    """
    for field, lowest in least.items():
        value = getattr(method, field)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not lowest <= value < float("inf"):
            raise InputError(f"{field} must be a finite number of at least {lowest:g}; found {value!r}")


def check_whole(method: object, **least: int) -> None:
    """Raise an `InputError` unless these settings are whole numbers of at least so much."""
    for field, lowest in least.items():
        value = getattr(method, field)
        if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
            raise InputError(f"{field} must be a whole number of at least {lowest}; found {value!r}")


def check_choices(method: object, **known: Iterable[str]) -> None:
    """Raise an `InputError` unless each of these settings is one of those values."""
    for field, choices in known.items():
        value = getattr(method, field)
        if value not in choices:
            raise InputError(f"{field} must be one of {', '.join(choices)}; found {value!r}")


def need_pixels(model: Branched, images: Tensor, what: str) -> None:
    """Raise an `InputError` for images that were normalised outside of the model, which cannot be augmented."""
    low, high = (bound.item() for bound in torch.aminmax(images))
    if not model.normalises and (low < -0.01 or high > 1.01):
        raise InputError(
            f"{what} need images in [0, 1]; found {low:.3g} to {high:.3g}; let the model normalise them itself: "
            "ncttt.Adapter(net, method, mean=mean, std=std)"
        )
