"""Features of any classifier: as positions `(B, P, C)`, pooled, and those that the logits are made from."""

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Branched, Features
from ncttt.model.modes import evaluating
from ncttt.model.taps import Tap


def as_tuple(features: Features) -> tuple[Tensor, ...]:
    """Features of one or several layers, as a tuple."""
    return (features,) if isinstance(features, Tensor) else features


def as_positions(features: Tensor) -> Tensor:
    """Maps, tokens or vectors as `(B, P, C)`; without a copy for maps in channels_last."""
    if features.ndim == 2:
        return features.unsqueeze(1)
    if features.ndim == 3:
        return features
    if features.ndim == 4:
        return features.permute(0, 2, 3, 1).flatten(1, 2)
    raise InputError(f"features must be (B, C), (B, N, C) or (B, C, H, W); found {tuple(features.shape)}")


def pooled(features: Features) -> Tensor:
    """Features averaged over positions, those of several layers side by side: `(B, C)`."""
    return torch.cat([as_positions(layer).mean(1) for layer in as_tuple(features)], dim=1)


def penultimate_features(model: Branched, images: Tensor, layer: str | None = None) -> tuple[Tensor, Tensor]:
    """Logits `(B, classes)` and features `(B, d)`: the named layer's output, or the input of the last linear layer.

    Maps and tokens are averaged over their positions.
    """
    if layer is not None:
        with Tap(model.classifier, (layer,)) as tap:
            logits = model(images)
        features = tap.outputs[layer]
    else:
        with _LastLinear(model) as last:
            logits = model(images)
        features = last.input_for(logits)
    if features.ndim < 2 or len(features) != len(logits):
        where = "the input of the last linear layer" if layer is None else f"layer {layer!r}"
        raise InputError(f"expected features of {len(logits)} images from {where}; found {tuple(features.shape)}")
    return logits, as_positions(features).mean(1)


@torch.inference_mode(False)
@torch.no_grad()
def last_linear(model: Branched) -> nn.Linear:
    """The linear layer that gives the logits: the last that runs, or of a plain module the last that it defines."""
    if model.input_shape is not None:
        with evaluating(model.classifier), _LastLinear(model) as last:
            logits = model(torch.zeros(2, *model.input_shape).to(model.mean))
        return last.linear_for(logits)
    linears = [part for part in model.classifier.modules() if isinstance(part, nn.Linear)]
    if not linears:
        raise _no_linear(model, "found none")
    return linears[-1]


def _no_linear(model: Branched, found: str) -> InputError:
    """What to say if the logits do not come from a linear layer, and what the model's method can do then."""
    method, network = type(model.method).__name__, type(model.classifier).__name__
    here = f"name the layer whose output to use: ncttt.{method}(layer='...')"
    elsewhere = "use a method that does not look at it, such as TENT, or ncttt.Lame(layer='...')"
    return InputError(
        f"{method} looks at the linear layer that gives the logits; {found} in {network}: "
        f"{here if hasattr(model.method, 'layer') else elsewhere}"
    )


class _LastLinear:
    """A context manager that remembers which linear layer ran last, and what it was given."""

    def __init__(self, model: Branched):
        self._model = model
        self._last: tuple[nn.Linear, Tensor] | None = None

    def __enter__(self) -> "_LastLinear":
        linears = [module for module in self._model.classifier.modules() if isinstance(module, nn.Linear)]
        self._hooks = [module.register_forward_pre_hook(self._hook) for module in linears]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _hook(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(module, nn.Linear)
        self._last = module, inputs[0]

    def input_for(self, logits: Tensor) -> Tensor:
        self.linear_for(logits)
        assert self._last is not None
        return self._last[1]

    def linear_for(self, logits: Tensor) -> nn.Linear:
        if self._last is None:
            raise _no_linear(self._model, "found none that runs")
        linear, _ = self._last
        if linear.out_features != logits.shape[1]:
            found = f"found {logits.shape[1]} logits, and {linear.out_features} values from the last one that runs"
            raise _no_linear(self._model, found)
        return linear
