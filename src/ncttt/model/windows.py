"""The moments of the last images of a stream, layer by layer, as tensors of fixed shape."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class Window(nn.Module):
    """Means and variances `(N, C)` of the last N images in one layer, the newest last; the source's until they came."""

    means: Tensor
    variances: Tensor

    def __init__(self, layer: _BatchNorm, images: int):
        super().__init__()
        assert layer.running_mean is not None
        assert layer.running_var is not None
        self.register_buffer("means", layer.running_mean.detach().repeat(images, 1))
        self.register_buffer("variances", layer.running_var.detach().repeat(images, 1))


def windows_of(layers: Sequence[_BatchNorm], images: int) -> nn.ModuleList:
    """A window for each layer, in their order, made while the layers hold the source's statistics."""
    return nn.ModuleList(Window(layer, images) for layer in layers)
