"""A queue of the newest test features, so that small batches have moments worth aligning."""

import torch
from torch import Tensor, nn


class FeatureQueue(nn.Module):
    """The newest `size` rows, those of the batch at hand first.

    Several steps on one batch replace its rows, which are recognised by a signature of its images. The buffers belong
    to a stream, not to the model, so they are not saved with it.
    """

    rows: Tensor
    filled: Tensor
    newest: Tensor
    signature: Tensor

    def __init__(self, size: int, channels: int):
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, channels), persistent=False)
        self.register_buffer("filled", torch.zeros((), dtype=torch.long), persistent=False)
        self.register_buffer("newest", torch.zeros((), dtype=torch.long), persistent=False)
        self.register_buffer("signature", torch.zeros(3), persistent=False)

    def join(self, images: Tensor, rows: Tensor, size: int) -> Tensor:
        """The batch's rows `(B, d)` followed by past ones, up to `size` of them; the batch is never cut."""
        signature = torch.stack([images.mean(), images.std(correction=0), images[-1].mean()])
        again = torch.equal(signature, self.signature)
        past = self.rows[int(self.newest) if again else 0 : int(self.filled)]
        joined = torch.cat([rows, past.to(rows)[: max(0, size - len(rows))]])
        self._keep(joined.detach(), len(rows))
        self.signature.copy_(signature)
        return joined

    @torch.no_grad()
    def _keep(self, joined: Tensor, newest: int) -> None:
        kept = min(len(joined), len(self.rows))
        self.rows[:kept] = joined[:kept]
        self.filled.fill_(kept)
        self.newest.fill_(min(newest, kept))
