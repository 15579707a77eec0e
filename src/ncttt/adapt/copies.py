"""Shifted and mirrored copies of a batch, so that a step has more to learn from."""

import torch
import torch.nn.functional as F
from torch import Tensor


def shifted_copies(images: Tensor, copies: int, mirrored: bool = True) -> Tensor:
    """The images and copies of them, one after another: (B, C, H, W) -> (copies * B, C, H, W).

    All but the first two copies are shifted by up to a sixteenth of the image, a whole copy alike, its edge reflected;
    every other copy is mirrored. Without mirroring all but the first are shifted.

    >>> shifted_copies(torch.rand(8, 3, 32, 32), copies=4).shape
    torch.Size([32, 3, 32, 32])
    """
    if copies == 1:
        return images
    height, width = images.shape[2:]
    reach = max(1, min(height, width) // 16)
    padded = F.pad(images, [reach] * 4, mode="reflect")
    found = [images, images.flip(3)] if mirrored else [images]
    while len(found) < copies:
        top, left = torch.randint(2 * reach + 1, (2,)).tolist()
        window = padded[:, :, top : top + height, left : left + width]
        found.append(window.flip(3) if mirrored and len(found) % 2 else window)
    return torch.cat(found)
