"""A vision transformer for small images, whose tokens stand for patches."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError


class Attention(nn.Module):
    """Self-attention of several heads over tokens `(B, N, C)`."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        # (B, N, 3 * C) -> three of (B, heads, N, C / heads)
        queries, keys, values = self.qkv(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(queries, keys, values).transpose(1, 2).flatten(2))


class TransformerBlock(nn.Module):
    """Attention, then two linear layers, each on normalised tokens `(B, N, C)` and added to them."""

    def __init__(self, width: int, heads: int, growth: int = 2):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, growth * width), nn.GELU(), nn.Linear(growth * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attention(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))


class Stem(nn.Module):
    """Images `(B, 3, H, W)` to tokens `(B, N, width)`, row by row, by convolutions that look beyond a patch's border.

    They help small transformers to learn from few images (Xiao et al., 2021). Kernels of 4 pixels with stride 2 have
    their middle in the middle of a patch, which those of 3 pixels have not.
    """

    def __init__(self, patch_size: int, width: int):
        super().__init__()
        halvings = patch_size.bit_length() - 1
        channels = [3, *(width >> power for power in range(halvings - 1, -1, -1))]
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(channels):
            layers += [nn.Conv2d(inputs, outputs, 4, stride=2, padding=1), nn.GELU()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(channels[-1], width, 1))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images).flatten(2).transpose(1, 2)


class ViT(nn.Module):
    """A convolutional `stem`, learned positions, transformer `blocks`, a LayerNorm `norm` and a classifier `fc`.

    The stem, every block and the norm give patch tokens `(B, N, width)`; the classifier reads the mean of the last.
    """

    architecture: dict[str, Any]

    def __init__(self, num_classes: int, image_size: int, patch_size: int, width: int, depth: int, heads: int):
        super().__init__()
        self.size = (image_size, image_size)
        self.stem = Stem(patch_size, width)
        self.position = nn.Parameter(torch.empty(1, (image_size // patch_size) ** 2, width))
        self.blocks = nn.ModuleList(TransformerBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, num_classes)
        nn.init.trunc_normal_(self.position, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[2:] != self.size:
            wanted, found = ("x".join(str(side) for side in sides) for sides in (self.size, images.shape[2:]))
            raise InputError(f"this ViT has positions for images of {wanted} pixels; found {found}")
        tokens = self.stem(images) + self.position
        for block in self.blocks:
            tokens = block(tokens)
        return self.fc(self.norm(tokens).mean(1))
