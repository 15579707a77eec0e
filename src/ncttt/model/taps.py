"""Reading the output of named layers of any eager module, by hooks that live for one call.

A prefix pass ends as soon as the last tapped layer has run: nothing after it is computed, and no later BatchNorm sees
the batch. It is done by raising through the forward, so it works with any control flow.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError, nearest
from ncttt.base.words import kind_of

WRAPPERS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
COMPILED = "_torchdynamo_orig_callable"  # what torch.compile leaves on the functions that it makes


class _Reached(BaseException):
    """All tapped layers have run; not an `Exception`, so that a model's own `except` cannot swallow it."""


class Tap:
    """A context manager that catches the outputs of layers during one forward pass.

    With `stop` the pass ends once all of them have run. With `detach` the rest of the pass gets the last layer's
    output without its history, so that what follows builds no graph.
    """

    def __init__(self, module: nn.Module, layers: Sequence[str], stop: bool = False, detach: bool = False):
        self.module, self.layers, self.stop, self.detach = module, tuple(layers), stop, detach
        self.outputs: dict[str, Tensor] = {}
        self._versions: dict[str, int] = {}
        self._hooks: list[Any] = []

    def __enter__(self) -> "Tap":
        try:
            for name in self.layers:
                self._hooks.append(find_layer(self.module, name).register_forward_hook(self._hook(name)))
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> bool | None:
        self._remove()
        if kind is not None and kind is not _Reached:
            return False
        self._check_ran()
        if kind is None:
            self._check_untouched()
        return kind is _Reached

    def _hook(self, name: str) -> Any:
        def hook(layer: nn.Module, inputs: Any, output: Any) -> Tensor | None:
            if name in self.outputs:  # a module used twice is read where it runs first, in prefix and full pass alike
                return None
            if not isinstance(output, Tensor):
                raise InputError(f"layer {name!r} gives {kind_of(output)}, not a tensor; tap a layer inside it")
            self.outputs[name] = output
            # Inference tensors have no version; nothing learns from them either.
            self._versions[name] = -1 if output.is_inference() else output._version
            if len(self.outputs) < len(self.layers):
                return None
            if self.stop:
                raise _Reached
            return output.detach() if self.detach else None

        return hook

    def _remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _check_ran(self) -> None:
        missing = [name for name in self.layers if name not in self.outputs]
        if missing:
            raise InputError(f"layer {missing[0]!r} never runs in the forward of {type(self.module).__name__}")

    def _check_untouched(self) -> None:
        for name, output in self.outputs.items():
            if not output.is_inference() and output._version != self._versions[name]:
                raise InputError(
                    f"the output of layer {name!r} is changed in place by what follows it (an in-place activation or "
                    "addition), so it cannot be read; tap the layer that changes it, or make that step not in-place"
                )


def find_layer(module: nn.Module, name: str) -> nn.Module:
    """The submodule of that dotted name, or an `InputError` with the nearest names."""
    try:
        return module.get_submodule(name) if name else module.get_submodule("?")
    except (AttributeError, TypeError):
        names = [known for known, _ in module.named_modules() if known]
        raise InputError(f"no layer {name!r} in {type(module).__name__}{nearest(str(name), names)}") from None


def check_eager(module: nn.Module) -> None:
    """Raise an `InputError` that names the first part that runs another program than its module's own forward.

    Taps, statistics policies and steps hook layers and switch modes for the length of a call. A compiled, scripted or
    exported graph was recorded without them and would go on as it was recorded, and nothing would say so.
    """
    for name, part in module.named_modules():
        path = f"net.{name}" if name else "net"
        reason = _reason(part, path)
        if reason is not None:
            found, remedy = reason
            raise InputError(f"{f'layer {name!r}' if name else 'the network'} is {found}; {remedy}")


def check_copy(module: nn.Module) -> None:
    """Raise an `InputError` for a copy that would run the modules of its original: a function is never copied."""
    own = set(module.modules())
    for name, part in module.named_modules():
        forward = vars(part).get("forward")
        if isinstance(forward, FunctionType) and not all(inside in own for inside in _modules_of(forward)):
            where = f"layer {name!r}" if name else "the network"
            raise InputError(
                f"{where} has a forward that was replaced by a function, which would run the original in place of its "
                "copy; give copy=False, or define the forward in a class"
            )


def _reason(part: nn.Module, path: str) -> tuple[str, str] | None:
    """What a module is instead of eager, and what to do about it."""
    kind = type(part)
    if isinstance(part, torch.jit.ScriptModule):
        return "scripted or traced", "pass the eager module it was made from"
    if any(base.__name__ in WRAPPERS for base in kind.__mro__):
        return kind_of(part), f"pass the module inside it, {path}.module"
    if hasattr(part, "_orig_mod"):
        return "compiled", f"pass the eager module inside it, {path}._orig_mod; what Adapter.bake gives can be compiled"
    if part._compiled_call_impl is not None or any(hasattr(member, COMPILED) for member in _members(part)):
        return "compiled", "pass the network as it was before torch.compile; what Adapter.bake gives can be compiled"
    if isinstance(part, torch.fx.GraphModule) and _is_exported(part):
        return "exported, its layers dissolved into operations", "pass the module it was exported from"
    if kind.__module__.startswith("torch.") and ".quantized" in kind.__module__:
        return (
            f"quantised ({kind.__name__})",
            "pass it in floating point, and quantise what Adapter.bake gives",
        )
    tensors = (*part._parameters.values(), *part._buffers.values())
    if any(tensor is not None and nn.parameter.is_lazy(tensor) for tensor in tensors):
        return f"not initialised yet ({kind.__name__})", "run the network on a batch first"
    return None


def _members(part: nn.Module) -> Iterator[Any]:
    """What a module has of its own, and the functions of its class, as far as those are not PyTorch's."""
    yield from vars(part).values()
    for base in type(part).__mro__:
        if not base.__module__.startswith("torch."):
            yield from vars(base).values()


def _is_exported(part: torch.fx.GraphModule) -> bool:
    return any(isinstance(node.target, torch._ops.OpOverload) for node in part.graph.nodes)


def _modules_of(function: FunctionType) -> Iterator[nn.Module]:
    """The modules that a function holds on to."""
    for cell in function.__closure__ or ():
        held = cell.cell_contents
        held = held.__self__ if isinstance(held, MethodType) else held
        if isinstance(held, nn.Module):
            yield held


def logits_of(output: Any) -> Tensor:
    """The logits `(B, classes)` in what a classifier returns.

    They are the tensor itself; an entry or attribute `logits` (or an entry `out`, or the only tensor of a dict); or
    the first element of a tuple or list.
    """
    if isinstance(output, Tensor):
        logits = output
    elif isinstance(output, Mapping):
        tensors = [value for value in output.values() if isinstance(value, Tensor)]
        logits = output.get("logits", output.get("out", tensors[0] if len(tensors) == 1 else None))
    elif isinstance(getattr(output, "logits", None), Tensor):
        logits = output.logits
    else:
        logits = output[0] if isinstance(output, Sequence) and len(output) else None
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        shape = f" of shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else ""
        kind = type(logits if isinstance(logits, Tensor) else output).__name__
        raise InputError(f"expected logits (batch, classes) from the classifier; found a {kind}{shape}")
    return logits
