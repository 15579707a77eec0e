"""ActMAD: bring mean and variance of what every normalisation layer gives, place by place, to those of source images.

With m and v the mean and variance over a batch of each value of a layer's output, one for each channel and place, and
m0, v0 those over source images, the loss is half the sum over layers of mean |m - m0| + mean |v - v0|.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import WITHOUT_NORM, every_parameter, own_pass
from ncttt.model.branched import NORMALISATIONS, Branched, Features
from ncttt.model.modes import evaluating
from ncttt.model.moments import moments_along
from ncttt.model.norm import Policy
from ncttt.model.taps import check_eager


class Moments(NamedTuple):
    """Mean and unbiased variance over images of what a layer gives, in the shape of one image's output."""

    mean: Tensor
    variance: Tensor


class SourceMoments(nn.Module):
    """The moments of source images, for each run of a normalisation layer, in the order in which they run."""

    def __init__(self, shapes: Sequence[torch.Size]):
        super().__init__()
        self.runs = len(shapes)
        for number, shape in enumerate(shapes):
            self.register_buffer(f"mean{number}", torch.zeros(shape))
            self.register_buffer(f"variance{number}", torch.zeros(shape))

    def each(self) -> list[Moments]:
        """The moments of each run."""
        return [
            Moments(self.get_buffer(f"mean{number}"), self.get_buffer(f"variance{number}"))
            for number in range(self.runs)
        ]


@dataclass(frozen=True, kw_only=True)
class ActMAD(Method):
    """Alignment of activations with the source's, by a step on all weights for each batch.

    The source's moments are measured by `ncttt.calibrated(net, ActMAD(), source_images)`, without labels. They belong
    to places, so test images have the size of those source images. One image has no variance: then means alone count.
    """

    name: ClassVar[str] = "actmad"
    title: ClassVar[str] = "ActMAD"
    place: ClassVar[float] = 35
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    trains: ClassVar[Literal["joint", "branch", "nothing"]] = "nothing"
    needs: ClassVar[str] = "moments of activations"

    steps: int = 1
    lr: float = 1e-2
    optimizer: str = "nesterov"
    norm: Policy | tuple[Policy, Policy] = "source"

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> SourceMoments:
        assert model.input_shape is not None
        with torch.no_grad(), evaluating(model.classifier), moments_of_outputs(model) as outputs:
            model(torch.zeros(2, *model.input_shape).to(model.mean))
        if not outputs:
            raise InputError(
                "ActMAD compares the outputs of normalisation layers; found none that runs in "
                f"{type(model.classifier).__name__}: {WITHOUT_NORM}"
            )
        return SourceMoments([output.mean.shape for output in outputs])

    @torch.no_grad()
    def calibrate(self, model: Branched, batches: Iterable[Tensor | Sequence[Tensor]]) -> None:
        """Measure the moments of all source images together; labels, if there are any, are not looked at."""
        branch, count = _branch(model), 0
        totals = [[torch.zeros_like(part, dtype=torch.float64) for part in known] for known in branch.each()]
        with evaluating(model), own_pass(model):
            for batch in batches:
                images = batch if isinstance(batch, Tensor) else batch[0]
                model.check_images(images)
                outputs, size = self._outputs(model, images.to(model.mean)), len(images)
                for (mean, squares), output in zip(totals, outputs, strict=True):
                    middle = output.mean.double()
                    mean += size * middle
                    squares += (size - 1) * output.variance.double() + size * middle.square()
                count += size
        if count < 2:
            raise InputError(f"calibration needs at least two source images; found {count}")
        for known, (mean, squares) in zip(branch.each(), totals, strict=True):
            known.mean.copy_(mean / count)
            known.variance.copy_((squares - mean.square() / count).clamp_min(0) / (count - 1))

    def forget(self, model: Branched) -> None:
        for buffer in _branch(model).buffers():
            buffer.zero_()

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return every_parameter(model)

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        loss = images.new_zeros(())
        for output, source in zip(self._outputs(model, images), _branch(model).each(), strict=True):
            loss = loss + (output.mean - source.mean).abs().mean() / 2
            if len(images) > 1:
                loss = loss + (output.variance - source.variance).abs().mean() / 2
        return Objective(loss)

    def _outputs(self, model: Branched, images: Tensor) -> list[Moments]:
        """The moments of a batch, or an `InputError` unless they can be compared with the source's."""
        with moments_of_outputs(model) as outputs:
            model(images)
        found, known = ([part.mean.shape for part in parts] for parts in (outputs, _branch(model).each()))
        if found != known:
            raise InputError(
                f"ActMAD compares each place of an image with the source's, measured on images of shape "
                f"{model.input_shape}: the layers give other outputs for images of shape {tuple(images.shape[1:])}"
            )
        return outputs


@contextmanager
def moments_of_outputs(model: Branched) -> Iterator[list[Moments]]:
    """Fill a list, by a pass inside the `with` block, with the moments of each normalisation layer, as they run."""
    check_eager(model.classifier)
    found: list[Moments] = []

    def look(layer: nn.Module, inputs: Any, output: Tensor) -> None:
        own = output.clone()  # what follows, as a ReLU, may change the output in place
        mean, variance = moments_along(own, [0])
        found.append(Moments(mean[0], variance[0] * (len(own) / max(1, len(own) - 1))))

    layers = [part for part in model.classifier.modules() if isinstance(part, NORMALISATIONS)]
    handles = [layer.register_forward_hook(look) for layer in layers]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _branch(model: Branched) -> SourceMoments:
    assert isinstance(model.branch, SourceMoments)
    return model.branch
