"""The decoder of TTT-MAE: from the encoder's tokens of the visible patches to the pixels of the hidden ones."""

import torch
from torch import Tensor, nn

from ncttt.methods.ttt_mae.entry import Entry
from ncttt.methods.ttt_mae.patches import chosen
from ncttt.nets.transformer import TransformerBlock

HEAD = 32  # channels of a head of attention


class Decoder(nn.Module):
    """Narrower tokens, the mask token at every hidden patch, positions, transformer blocks, pixels.

    `entry` says where and how the encoder's patches become tokens.
    """

    def __init__(self, entry: Entry, channels: int, pixels: int, *, width: int, depth: int):
        super().__init__()
        self.entry = entry
        self.embed = nn.Linear(channels, width)
        self.mask = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, entry.patches, width))
        self.blocks = nn.Sequential(*(TransformerBlock(width, width // HEAD) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.pixels = nn.Linear(width, pixels)

    def forward(self, tokens: Tensor, visible: Tensor, hidden: Tensor) -> Tensor:
        """Pixels `(B, M, pixels)` of the hidden patches, of tokens `(B, others + visible, channels)`.

        The tokens that stand for no patch come first. Attention takes no notice of order, so the hidden patches are put
        behind the visible ones, not between them.
        """
        embedded = self.embed(tokens)
        positions = self.position.expand(len(tokens), -1, -1)
        others, seen = embedded.split([self.entry.others, visible.shape[1]], 1)
        row = torch.cat([others, seen + chosen(positions, visible), self.mask + chosen(positions, hidden)], 1)
        return self.pixels(self.norm(self.blocks(row)[:, -hidden.shape[1] :]))
