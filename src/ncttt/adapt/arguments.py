"""What an Adapter is given, checked: a model and a method that fit, what moves, statistics, when to stop, steps."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from torch import Tensor, nn

from ncttt.adapt.protocols import Protocol
from ncttt.base.errors import InputError
from ncttt.base.words import counted
from ncttt.methods.base import Method
from ncttt.model.branched import Branched
from ncttt.model.certainty import Recent
from ncttt.model.norm import Policy, batch_share, moves_buffers, moves_in_passing
from ncttt.model.policies import window_size
from ncttt.model.snapshot import named_tensors
from ncttt.model.windows import windows_of

if TYPE_CHECKING:
    from ncttt.model.gathered import Gathered

Norm = Policy | tuple[Policy, Policy]
Stop = Literal["source"] | float | None


def method_for(model: nn.Module, method: Method | None) -> Method:
    """The method, or the model's own; an `InputError` unless the model can run it."""
    if not isinstance(model, nn.Module):
        raise InputError(f"an Adapter wraps an nn.Module; found {model!r}")
    own = model.method if isinstance(model, Branched) else None
    if method is None and own is None:
        raise InputError("a plain module needs a method, as in Adapter(net, PTBN()); found none")
    method = method or own
    if not isinstance(method, Method):
        raise InputError(f"method must be a Method, such as NCTTT(); found {method!r}")
    if method.has_branch and method.trains == "nothing":
        _check_calibrated(model, method)
    elif method.has_branch and type(own) is not type(method):
        given = f"a model trained for {type(own).__name__}" if own else f"a plain {type(model).__name__}"
        raise InputError(
            f"{type(method).__name__} needs a model trained for it (ncttt.attach, or `ncttt train`); found {given}"
        )
    other = [name for name in method.branch_settings if getattr(own, name) != getattr(method, name)]
    if other:
        hint = "change others by dataclasses.replace(model.method, ...)"
        raise InputError(f"the model's branch was built with another {', '.join(other)} than this method's; {hint}")
    return method


def _check_calibrated(model: nn.Module, method: Method) -> None:
    """Raise an `InputError` unless the model knows what this method needs of the source."""
    own = isinstance(model, Branched) and type(model.method) is type(method) and model.branch is not None
    if not own or not model.calibrated:
        name = type(method).__name__
        raise InputError(
            f"{name} needs the {method.needs} of the source, which this {type(model).__name__} lacks: "
            f"model = ncttt.calibrated(net, {name}(), source_images) measures it, without labels"
        )


def normalising(
    model: nn.Module, method: Method, mean: Sequence[float] | None, std: Sequence[float] | None
) -> Branched:
    """A plain module with the normalisation of its input; a `Branched` has its own."""
    if not isinstance(model, Branched):
        return Branched(model, None, method, mean, std)
    if mean is not None or std is not None:
        own = (
            f"mean={model.mean.flatten().tolist()}, std={model.std.flatten().tolist()}" if model.normalises else "none"
        )
        raise InputError(
            f"mean and std are for plain modules; this model was made with its own normalisation ({own}); "
            "give them to ncttt.attach or ncttt.Branched instead"
        )
    return model


def memory_of(method: Method, model: Branched) -> nn.Module | None:
    """A new memory of the method, on the device and in the precision of the model."""
    memory = method.memory(model)
    if memory is not None and not isinstance(memory, nn.Module):
        raise InputError(f"{type(method).__name__}.memory must give an nn.Module or None; found {memory!r}")
    return None if memory is None else memory.to(model.mean).eval()


def moving_parameters(method: Method, model: Branched) -> dict[str, nn.Parameter]:
    """Unfreeze just what the method moves, and give it by name."""
    model.requires_grad_(False)
    moving = method.parameters(model)
    if not isinstance(moving, dict):
        raise InputError(f"{type(method).__name__}.parameters must give a dict by name; found {type(moving)}")
    if type(method).adaptation_loss is not Method.adaptation_loss and not method.learns:
        raise InputError(f"{type(method).__name__} has an adaptation_loss but does not learn: say learns = True")
    if method.learns and not moving:
        raise InputError(f"{type(method).__name__} has a loss but nothing to move in this network")
    for parameter in moving.values():
        parameter.requires_grad_(True)
    return moving


def moving_buffers(method: Method, model: Branched, statistics: bool) -> dict[str, Tensor]:
    """What moves beside the parameters: buffers of the branch, the memory, and of BatchNorm layers the `statistics`."""
    buffers = {f"branch.{name}": buffer for name, buffer in method.buffers(model).items()}
    if model.memory is not None:
        buffers |= {f"memory.{name}": tensor for name, tensor in named_tensors(model.memory).items()}
    for name, part in (("windows", model.windows), ("recent", model.recent), ("gathered", model.gathered)):
        if part is not None:
            buffers |= {f"{name}.{key}": tensor for key, tensor in named_tensors(part).items()}
    if statistics:
        layers = set(model.batch_norms())
        named = ((name, module) for name, module in model.named_modules() if module in layers)
        buffers |= {f"{name}.{key}": tensor for name, module in named for key, tensor in module.named_buffers()}
    return buffers


def checked_steps(steps: int) -> int:
    """A number of steps as an int."""
    try:
        number = operator.index(steps)
    except TypeError:
        number = -1
    if isinstance(steps, bool) or number < 0:
        raise InputError(f"a step count must be a whole number >= 0; found {steps!r}")
    return number


def rising_steps(steps: Sequence[int]) -> list[int]:
    """The numbers of steps to predict after."""
    if isinstance(steps, Tensor) and steps.ndim > 1:
        raise InputError(f"predict_at takes the step counts first; found a tensor {tuple(steps.shape)}")
    numbers = [checked_steps(number) for number in steps]
    if not numbers or numbers != sorted(set(numbers)):
        raise InputError(f"step counts must rise, as in [0, 1, 5, 20]; found {list(steps)}")
    return numbers


def norm_pair(norm: Norm, model: Branched) -> tuple[Policy, Policy]:
    """The statistics policies of the gradient passes and of the prediction."""
    pair = (norm, norm) if isinstance(norm, str) else tuple(norm)
    if len(pair) != 2:
        raise InputError(f"norm must be one policy or a pair (gradient, prediction); found {norm!r}")
    if max(map(batch_share, pair)) > 0 and not model.batch_norms():
        warnings.warn(f"norm={norm!r} changes nothing: {_without_batch_norm(model)}", stacklevel=4)
        return "source", "source"
    if pair[0] != pair[1] and all(map(moves_buffers, pair)) and any(map(moves_in_passing, pair)):
        raise InputError(f"a stream has one moving mean or window of its statistics; found norm={norm!r}")
    if pair[0] != pair[1] and moves_in_passing(pair[0]):
        raise InputError(f"{pair[0]!r} follows the predictions of a stream, so they must use it, too; found {norm!r}")
    if max(map(batch_share, pair)) > 0:
        _name_other_statistics(norm, model)
    return pair


def _without_batch_norm(model: Branched) -> str:
    """Why a policy has nothing to set, and what becomes of a method that does nothing else."""
    why = f"the classifier has no BatchNorm that keeps source statistics ({type(model.classifier).__name__})"
    method = model.method
    if method.learns or model.memory is not None or type(method).predict is not Method.predict:
        return why
    return (
        f"{why}, so {type(method).__name__} predicts as the model by itself does; use a method that does not rest on "
        "them, such as SAR, MEMO or T3A"
    )


def _name_other_statistics(norm: Norm, model: Branched) -> None:
    """Warn of layers that keep statistics and look like a BatchNorm, but are none that a policy can govern."""
    governed = set(model.batch_norms())
    others = [
        f"{name!r} ({type(layer).__name__})"
        for name, layer in model.classifier.named_modules()
        if layer not in governed and isinstance(getattr(layer, "running_mean", None), Tensor)
    ]
    if others:
        warnings.warn(
            f"norm={norm!r} changes only BatchNorm layers of PyTorch and their subclasses; "
            f"{counted(len(others), 'other layer')} will use source statistics, first {others[0]}",
            stacklevel=5,
        )


def windows_for(norm: tuple[Policy, Policy], model: Branched) -> nn.ModuleList | None:
    """New windows over the last images, for a policy that looks at them."""
    size = window_size(norm[1])
    return None if size is None else windows_of(model.batch_norms(), size)


def recent_for(stop: Stop, protocol: Protocol, model: Branched) -> Recent | None:
    """New room for how certain the source model is of the last images, where a gate can remember them."""
    return Recent().to(model.mean) if stop == "source" and protocol.remembers else None


def gathered_for(method: Method, protocol: Protocol, model: Branched) -> Gathered | None:
    """New room for the images of a method that gathers them."""
    if not method.gather:
        return None
    if not protocol.remembers:
        raise InputError(
            f"gather={method.gather} keeps images of a stream to learn from, but the protocol {protocol.name!r} "
            "remembers none; use protocol='online' or 'continual'"
        )
    if model.input_shape is None:
        raise InputError(
            f"gather={method.gather} keeps images, so their shape must be known, which a plain module does not tell: "
            "model = ncttt.attach(net, None, method, images), then ncttt.Adapter(model)"
        )
    from ncttt.model.gathered import Gathered  # only who gathers needs it

    return Gathered(method.gather, model.input_shape).to(model.mean).eval()


def checked_stop(stop: Stop, model: Branched, gradient_norm: Policy) -> Stop:
    """The rule that ends the steps; warns of a level that was measured with other statistics."""
    if stop is None:
        return None
    if stop != "source" and (isinstance(stop, bool | str) or not math.isfinite(stop)):
        raise InputError(f"stop must be 'source', a level of the score or None; found {stop!r}")
    if stop != "source":
        need_score(model.method, "a level to stop at")
        return stop
    known = model.method.source_level(model, 1) is not None
    if known and model.batch_norms() and gradient_norm != model.method.gradient_norm:
        warnings.warn(f"the source's level was measured with other statistics than {gradient_norm!r}", stacklevel=4)
    return stop


def has_source_level(stop: Stop, model: Branched) -> bool:
    """Whether the score can end steps at the source's level; warns of a branch that cannot tell what is source."""
    if stop != "source" or not has_score(model.method) or model.method.tells_source(model):
        return True
    warnings.warn(
        f"{type(model.method).__name__} cannot stop at the source's level, so batches that are not left to the source "
        "take all steps: at calibration its branch scored source images and the same images with shuffled pixels "
        "alike; train the branch longer",
        stacklevel=4,
    )
    return False


def has_score(method: Method) -> bool:
    """Whether a method has a score of its own."""
    return type(method).score is not Method.score


def need_score(method: Method, what: str) -> None:
    """Raise an `InputError` for a method without a score."""
    if not has_score(method):
        raise InputError(f"{what} needs a method with a score of its own, such as NCTTT; found {method!r}")
