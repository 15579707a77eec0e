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
        with _LastLinear(model.classifier) as last:
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
        with evaluating(model.classifier), _LastLinear(model.classifier) as last:
            logits = model(torch.zeros(2, *model.input_shape).to(model.mean))
        return last.linear_for(logits)
    linears = [part for part in model.classifier.modules() if isinstance(part, nn.Linear)]
    if not linears:
        raise InputError(f"expected a linear layer that gives the logits; found none in {_name(model.classifier)}")
    return linears[-1]


class _LastLinear:
    """A context manager that remembers which linear layer ran last, and what it was given."""

    def __init__(self, classifier: nn.Module):
        self._classifier = classifier
        self._last: tuple[nn.Linear, Tensor] | None = None

    def __enter__(self) -> "_LastLinear":
        linears = [module for module in self._classifier.modules() if isinstance(module, nn.Linear)]
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
        network = _name(self._classifier)
        hint = "name the layer whose output to use, for a method that has such a setting, as in Lame(layer='...')"
        if self._last is None:
            raise InputError(f"no linear layer runs in {network}, so its features cannot be found; {hint}")
        linear, _ = self._last
        if linear.out_features != logits.shape[1]:
            instead = f"the last linear layer that runs in {network} gives {linear.out_features} values"
            raise InputError(f"expected it to give the {logits.shape[1]} logits, but {instead}; {hint}")
        return linear


def _name(network: nn.Module) -> str:
    return type(network).__name__
