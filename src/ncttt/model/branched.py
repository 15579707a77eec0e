"""Branched: any classifier with one auxiliary branch on a named layer, and the input's normalisation.

The classifier is wrapped, not copied, and keeps its own keys under `classifier.`; the branch lives under `branch.`.
Images are float `(B, C, H, W)` in [0, 1] everywhere outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.base.errors import InputError
from ncttt.base.words import kind_of
from ncttt.model.certainty import Recent, measured_certainty
from ncttt.model.last_stage import AUTO, last_stage
from ncttt.model.modes import evaluating
from ncttt.model.norm import batch_norms, statistics
from ncttt.model.taps import Tap, check_eager, find_layer, logits_of

if TYPE_CHECKING:
    from ncttt.methods.base import Method
    from ncttt.model.gathered import Gathered

Features = Tensor | tuple[Tensor, ...]
NORMALISATIONS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)


class Branched(nn.Module):
    """A classifier, the layer or layers its auxiliary branch reads, the branch, and the method it belongs to.

    `classes` are the names of the classes, where they are known, and `resize` is how photographs were brought to the
    size that the model was made for, as `ncttt.data.folder` takes it: a training takes both from its data.
    """

    mean: Tensor
    std: Tensor
    source_certainty: Tensor

    def __init__(
        self,
        classifier: nn.Module,
        layer: str | Sequence[str] | None,
        method: Method,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ):
        super().__init__()
        check_eager(classifier)
        self.classifier = classifier
        self.branch: nn.Module | None = None
        # All in the own model of an `Adapter`: what the method remembers, the source's values of what moves, a window
        # for each BatchNorm under a window policy, how certain the source gate was of the last images, and images that
        # wait for a step.
        self.memory: nn.Module | None = None
        self.source: Mapping[str, Tensor] = {}
        self.windows: nn.ModuleList | None = None
        self.recent: Recent | None = None
        self.gathered: Gathered | None = None
        if not isinstance(layer, str | Sequence | None):
            raise InputError(f"layer must be a dotted name or several of them; found {layer!r}")
        self.layer = layer if layer is None or isinstance(layer, str) else tuple(layer)
        self.method = method
        self.input_shape: tuple[int, ...] | None = None
        self.classes: tuple[str, ...] | None = None
        self._whole = False
        self._sizes: dict[tuple[int, ...], bool] = {}
        self.resize = "square"
        self.normalises = mean is not None or std is not None
        tensors = (*classifier.parameters(), *classifier.buffers(), torch.zeros(()))
        like = next(tensor for tensor in tensors if tensor.is_floating_point())
        self.register_buffer("mean", per_channel("mean", (0.0,) if mean is None else mean).to(like))
        self.register_buffer("std", per_channel("std", (1.0,) if std is None else std).to(like))
        # Of held-out source images, (confidence, evidence) x (mean, spread); all -1 until calibrated.
        self.register_buffer("source_certainty", torch.full((2, 2), -1.0).to(like))
        if (mean is None) != (std is None):
            raise InputError(f"mean and std go together; found mean={mean}, std={std}")
        if not bool((self.std > 0).all() and (self.mean.abs() <= 1).all()):
            raise InputError(f"std must be positive and mean that of images in [0, 1]; found mean={mean}, std={std}")
        if len(set(self.layers)) < len(self.layers):
            raise InputError(f"each layer is tapped once; found {self.layers}")
        for name in self.layers:
            find_layer(classifier, name)

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the tapped layers."""
        if self.layer is None:
            return ()
        return (self.layer,) if isinstance(self.layer, str) else self.layer

    def forward(self, images: Tensor) -> Tensor:
        """Logits `(B, classes)` of images `(B, C, H, W)` in [0, 1]."""
        return logits_of(self.classifier(self._normalised(images)))

    def features(self, images: Tensor) -> Features:
        """The tapped layer's output (a tuple for several layers), by a pass that runs nothing after it."""
        with self._tap(stop=not self._whole, detach=self._whole) as tap:
            self.classifier(self._normalised(images))
        return self._in_order(tap)

    @contextmanager
    def whole_passes(self) -> Iterator[None]:
        """Let `features`, inside the `with` block, also run what follows the layer, whose statistics move then, too."""
        before, self._whole = self._whole, True
        try:
            yield
        finally:
            self._whole = before

    def forward_with_features(self, images: Tensor, detach: bool = False) -> tuple[Tensor, Features]:
        """Logits and features from one full pass; with `detach`, what follows the last tap gets it without history."""
        with self._tap(detach=detach) as tap:
            output = self.classifier(self._normalised(images))
        return logits_of(output), self._in_order(tap)

    def calibrate(self, batches: Any) -> None:
        """Remember how certain the classifier is of held-out source images, and what its method remembers of them.

        Batches are images, or pairs whose first part is; or they come from an `ImageSet`, or a Dataset or DataLoader of
        PyTorch. Labels, if there are any, are not looked at.
        """
        from ncttt.data.batching import source_batches  # needs Pillow, without which an Adapter works

        batches = source_batches(batches)
        batches = list(batches) if isinstance(batches, Iterator) else batches  # they are gone through twice
        certainty = measured_certainty(self, batches)
        self.method.calibrate(self, batches)
        self.source_certainty.copy_(certainty)

    @property
    def calibrated(self) -> bool:
        """Whether it is known how certain the classifier is of source images."""
        return bool(self.source_certainty[0, 0] >= 0)

    def forget(self) -> None:
        """Undo `calibrate`: what was remembered of source images belongs to weights that are about to change."""
        self.method.forget(self)
        self.source_certainty.fill_(-1.0)

    def encoder_parameters(self, layer: str | None = None) -> dict[str, nn.Parameter]:
        """The classifier's parameters that the features depend on, or those that the output of `layer` depends on."""
        names = self._dependencies(self.layers if layer is None else (layer,))
        return {name: p for name, p in self.classifier.named_parameters() if name in names}

    def source_parameters(self) -> dict[str, Tensor]:
        """The values that the classifier's parameters which adaptation moves have at the source, by name.

        They are known in the model of an `Adapter`, and are not to be changed.
        """
        named = ((name, f"classifier.{name}") for name, _ in self.classifier.named_parameters())
        return {name: self.source[own] for name, own in named if own in self.source}

    def norm_parameters(self) -> dict[str, nn.Parameter]:
        """Scale and shift of the classifier's normalisation layers."""
        return {
            f"{prefix}.{name}" if prefix else name: parameter
            for prefix, module in self.classifier.named_modules()
            if isinstance(module, NORMALISATIONS)
            for name, parameter in module.named_parameters(recurse=False)
        }

    def batch_norms(self) -> list[_BatchNorm]:
        """The BatchNorm layers that a statistics policy governs: the classifier's, never the branch's."""
        return batch_norms(self.classifier)

    def check_images(self, images: Tensor) -> None:
        """Raise an `InputError` unless these are finite float images `(B, C, H, W)` in the range the model expects."""
        if not isinstance(images, Tensor) or images.ndim != 4 or not images.is_floating_point() or not len(images):
            given = f"{tuple(images.shape)} {images.dtype}" if isinstance(images, Tensor) else type(images).__name__
            raise InputError(f"expected a non-empty float batch of images (B, C, H, W) in [0, 1]; found {given}")
        if self.input_shape is not None and images.shape[1] != self.input_shape[0]:
            raise InputError(f"expected images of {self.input_shape[0]} channels; found {tuple(images.shape)}")
        if self.mean.numel() not in (1, images.shape[1]):
            raise InputError(
                f"expected images of {self.mean.numel()} channels, as in mean; found {tuple(images.shape)}"
            )
        low, high = (bound.item() for bound in torch.aminmax(images))
        if not (abs(low) < torch.inf and abs(high) < torch.inf):
            bad = (~images.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
            raise InputError(f"images must be finite; found NaN or infinite pixels in images {bad[:10]} of the batch")
        # A model without mean and std may be fed normalised images, but never those from 0 to 255.
        limits, why = ((-1, 2), ", because the model normalises them itself") if self.normalises else ((-10, 10), "")
        if low < limits[0] or high > limits[1]:
            raise InputError(f"expected images in [0, 1]{why}; found {low:.3g} to {high:.3g}")

    @torch.no_grad()
    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether the classifier, and the method's score of images, run on the shape `(C, H, W)`; tried once."""
        if shape not in self._sizes:
            images = torch.zeros(1, *shape).to(self.mean)
            try:
                with evaluating(self.classifier), statistics(self.batch_norms(), "source"):
                    if self.branch is None:
                        self(images)
                    else:
                        logits, features = self.forward_with_features(images)
                        self.method.score(self, features, logits)
            except (RuntimeError, ValueError, AssertionError):  # as PyTorch, timm and transformers say no
                self._sizes[shape] = False
            else:
                self._sizes[shape] = True
        return self._sizes[shape]

    def extra_repr(self) -> str:
        return f"layer={self.layer!r}, method={self.method!r}"

    def _normalised(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.std if self.normalises else images

    def _tap(self, stop: bool = False, detach: bool = False) -> Tap:
        if not self.layers:
            raise InputError("this model has no tapped layer; attach one with ncttt.attach(classifier, layer=...)")
        return Tap(self.classifier, self.layers, stop, detach)

    def _in_order(self, tap: Tap) -> Features:
        if isinstance(self.layer, str):
            return tap.outputs[self.layer]
        return tuple(tap.outputs[name] for name in self.layers)

    @torch.inference_mode(False)
    @torch.enable_grad()
    def _dependencies(self, layers: Sequence[str]) -> set[str]:
        """Ask autograd, with unfrozen stand-ins: registration order says nothing about what runs before a layer."""
        if self.input_shape is None:
            raise InputError("which parameters come before a layer is only known for a model made by ncttt.attach")
        named = {n: p.detach().requires_grad_() for n, p in self.classifier.named_parameters() if p.is_floating_point()}
        generator = torch.Generator().manual_seed(0)
        images = torch.rand(2, *self.input_shape, generator=generator, device="cpu").to(self.mean)
        with evaluating(self.classifier), Tap(self.classifier, layers, stop=True) as tap:
            torch.func.functional_call(self.classifier, named, (self._normalised(images),))
        total = torch.stack([output.sum() for output in tap.outputs.values()]).sum()
        if not total.requires_grad:
            return set()
        gradients = torch.autograd.grad(total, list(named.values()), allow_unused=True)
        return {name for name, gradient in zip(named, gradients, strict=True) if gradient is not None}


@torch.inference_mode(False)
def attach(
    classifier: nn.Module,
    layer: str | Sequence[str] | None,
    method: Method,
    example: Tensor,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> Branched:
    """Wrap a classifier with a method's auxiliary branch on a layer, or on several, given by dotted name.

    `layer="auto"` takes the last feature map or token sequence before the pooling; `model.layer` then has its name.
    None is for methods that need facts of the source and no layer: `ncttt.calibrated` makes such a model in one call.
    `example` is a small batch of images `(B, C, H, W)` in [0, 1]; one pass over it sizes the branch, so that its
    parameters exist before any optimizer does. `mean` and `std` are the per-channel normalisation of the classifier.

    >>> import ncttt
    >>> net = ncttt.models.resnet18(num_classes=10, image_size=32)
    >>> model = ncttt.attach(net, layer="layer2", method=ncttt.NCTTT(), example=torch.rand(2, 3, 32, 32))
    >>> model.features(torch.rand(4, 3, 32, 32)).shape
    torch.Size([4, 128, 16, 16])
    """
    if not isinstance(classifier, nn.Module):
        raise InputError(f"attach takes an nn.Module; found {kind_of(classifier)}")
    if isinstance(method, type) or not hasattr(method, "build_branch"):
        raise InputError(f"method must be a Method, such as NCTTT(); found {method!r}")
    model = Branched(classifier, None if layer == AUTO else layer, method, mean, std)
    model.check_images(example)
    if layer == AUTO:
        model.layer = last_stage(classifier, model._normalised(example[:2].to(model.mean)))
    with evaluating(classifier), torch.no_grad():
        first = example[:2].to(model.mean)
        logits, features = (model(first), ()) if model.layer is None else model.forward_with_features(first)
    model.input_shape = tuple(example.shape[1:])
    branch = method.build_branch(model, features, logits)
    model.branch = None if branch is None else branch.to(logits)
    method.parameters(model)  # what cannot move is better said now than after the training
    return model


def per_channel(name: str, values: Sequence[float] | Tensor) -> Tensor:
    """One finite number for each channel of images, `(C, 1, 1)`."""
    tensor = torch.as_tensor(values, dtype=torch.float32).flatten()
    if not bool(tensor.isfinite().all()) or tensor.numel() == 0:
        raise InputError(f"{name} must be one finite number per channel; found {values}")
    return tensor.view(-1, 1, 1)
