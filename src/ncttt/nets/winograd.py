"""3x3 convolutions whose gradients take a quarter of the multiplications on processors, by Winograd's algorithm.

F(4x4, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016): a tile of 6x6 values gives
4x4 results by 36 products for each pair of channels instead of 144; before and after stand three fixed linear maps. All
of it is matrix products, at which machines are best. The forward pass stays PyTorch's own, to the bit; gradients
differ from PyTorch's by rounding (some 1e-5 of their largest value in single precision). Second derivatives,
transforms of torch.func and compiled code are left to PyTorch.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.grad import conv2d_input, conv2d_weight

OUTPUT, TILE = 4, 6  # width of a tile of results, and of the values that it needs
# Beyond these the linear maps cost more than the products save: of maps, and of the kernel if there are few tiles.
FEWEST_CHANNELS, LARGEST_MAP, CHANNELS_PER_TILE = 96, 16, 6
EXACT_ENOUGH = (torch.float32, torch.float64)
CHUNK = 2**21  # values of a chunk's transformed tiles: what the caches hold

# The algorithm's linear maps for the points 0, 1, -1, 2, -2 and infinity.
_INPUT = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
_WEIGHT = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
_RESULT = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)


class Conv3x3(nn.Conv2d):
    """A 3x3 convolution without bias that keeps the size; the gradients are Winograd's where that is faster."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(inputs, outputs, 3, padding=1, bias=False)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if bias is None and self._as_made() and _pays(input, weight):
            return _Convolution.apply(input, weight)
        return super()._conv_forward(input, weight, bias)

    def _as_made(self) -> bool:
        """Whether nobody has edited the layer, as those do who fold a BatchNorm or dilate a stage."""
        shape = (self.kernel_size, self.stride, self.padding, self.dilation, self.groups, self.padding_mode)
        return shape == ((3, 3), (1, 1), (1, 1), (1, 1), 1, "zeros")


def _pays(images: Tensor, weight: Tensor) -> bool:
    if images.ndim != 4 or images.device.type != "cpu" or not images.dtype == weight.dtype in EXACT_ENOUGH:
        return False
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or not torch.is_grad_enabled():
        return False
    count, _, rows, columns = images.shape
    tiles = count * rows * columns // OUTPUT**2
    return (
        rows % OUTPUT == columns % OUTPUT == 0
        and max(rows, columns) <= LARGEST_MAP
        and min(weight.shape[:2]) >= FEWEST_CHANNELS
        and max(weight.shape[:2]) <= CHANNELS_PER_TILE * tiles
        and not torch.is_autocast_enabled("cpu")
    )


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(images: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(images, weight, padding=1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        images, weight = ctx.saved_tensors
        (gradient,) = gradients
        into_images, into_weight = ctx.needs_input_grad
        if torch.is_grad_enabled():  # second derivatives are asked for
            return (
                conv2d_input(images.shape, weight, gradient, padding=1) if into_images else None,
                conv2d_weight(images, weight.shape, gradient, padding=1) if into_weight else None,
            )
        # The channels of a pixel stand together from here on: maps are (images, rows, columns, channels).
        values = images.permute(0, 2, 3, 1).contiguous() if into_weight else None
        slopes = gradient.permute(0, 2, 3, 1).contiguous()
        count, rows, columns, outputs = slopes.shape
        inputs = images.shape[1]
        back = _transformed_weight(weight.flip(2, 3).transpose(0, 1)) if into_images else None
        image_slopes = slopes.new_empty((count, rows, columns, inputs)) if into_images else None
        products = slopes.new_zeros((TILE * TILE, inputs, outputs)) if into_weight else None
        each = max(1, CHUNK * OUTPUT**2 // (TILE**2 * rows * columns * max(inputs, outputs)))
        for start in range(0, count, each):
            part = slice(start, start + each)
            if image_slopes is not None and back is not None:
                image_slopes[part] = _results(torch.bmm(_transformed_tiles(slopes[part]), back), rows, columns)
            if products is not None and values is not None:
                tiles = _transformed_tiles(values[part]).transpose(1, 2)
                products.baddbmm_(tiles, _spread_slopes(slopes[part]))
        return (
            None if image_slopes is None else image_slopes.permute(0, 3, 1, 2),
            None if products is None else _weight_slopes(products),
        )


def _transformed_tiles(maps: Tensor) -> Tensor:
    """The maps' overlapping tiles, transformed: (36, tiles, channels)."""
    count, rows, columns, channels = maps.shape
    padded = F.pad(maps, (0, 0, 1, 1, 1, 1))
    image, row, column, channel = padded.stride()
    shape = (TILE, TILE, count, rows // OUTPUT, columns // OUTPUT, channels)
    tiles = padded.as_strided(shape, (row, column, image, OUTPUT * row, OUTPUT * column, channel))
    return (_on_both_axes("input", maps.dtype) @ tiles.reshape(TILE**2, -1)).view(TILE**2, -1, channels)


def _transformed_weight(weight: Tensor) -> Tensor:
    """A kernel (outputs, inputs, 3, 3), transformed: (36, inputs, outputs)."""
    outputs, inputs = weight.shape[:2]
    flat = weight.permute(2, 3, 1, 0).reshape(9, -1)
    return (_on_both_axes("weight", weight.dtype) @ flat).view(TILE**2, inputs, outputs)


def _results(products: Tensor, rows: int, columns: int) -> Tensor:
    """Products of tiles and kernel as maps of `rows` x `columns`."""
    channels = products.shape[2]
    flat = _on_both_axes("result", products.dtype) @ products.flatten(1)
    tiles = flat.view(OUTPUT, OUTPUT, -1, rows // OUTPUT, columns // OUTPUT, channels)
    return tiles.permute(2, 3, 0, 4, 1, 5).reshape(-1, rows, columns, channels)


def _spread_slopes(slopes: Tensor) -> Tensor:
    """The gradient for the maps as the gradient for the products: the transpose of `_results`."""
    count, rows, columns, channels = slopes.shape
    tiles = slopes.view(count, rows // OUTPUT, OUTPUT, columns // OUTPUT, OUTPUT, channels)
    flat = tiles.permute(2, 4, 0, 1, 3, 5).reshape(OUTPUT**2, -1)
    return (_on_both_axes("result", slopes.dtype).T @ flat).view(TILE**2, -1, channels)


def _weight_slopes(products: Tensor) -> Tensor:
    """The gradient for the transformed kernel as the gradient for the kernel."""
    inputs, outputs = products.shape[1:]
    flat = _on_both_axes("weight", products.dtype).T @ products.flatten(1)
    return flat.view(3, 3, inputs, outputs).permute(3, 2, 0, 1)


@cache
def _on_both_axes(name: str, dtype: torch.dtype) -> Tensor:
    """A linear map of rows and columns at once."""
    with torch.inference_mode(False):
        once = {"input": _INPUT, "weight": _WEIGHT, "result": _RESULT}[name]
        once = torch.tensor(once, dtype=torch.float64, device="cpu")
        return torch.kron(once, once).to(dtype)
