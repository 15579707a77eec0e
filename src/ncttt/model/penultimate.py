"""Logits and the feature vector they are made from, out of one pass of any classifier."""

from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.model.branched import Branched
from ncttt.model.positions import as_positions
from ncttt.model.taps import Tap, check_eager


def penultimate_features(model: Branched, images: Tensor, layer: str | None = None) -> tuple[Tensor, Tensor]:
    """Logits `(B, classes)` and features `(B, d)`: the named layer's output, or the input of the last linear layer.

    Maps and tokens are averaged over their positions.
    """
    check_eager(model.classifier)
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
        network, hint = type(self._classifier).__name__, "name the layer whose output to use, as in Lame(layer='...')"
        if self._last is None:
            raise InputError(f"no linear layer runs in {network}, so its features cannot be found; {hint}")
        linear, features = self._last
        if linear.out_features != logits.shape[1]:
            instead = f"the last linear layer that runs in {network} gives {linear.out_features} values"
            raise InputError(f"expected it to give the {logits.shape[1]} logits, but {instead}; {hint}")
        return features
