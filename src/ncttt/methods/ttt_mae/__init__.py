"""TTT-MAE: a masked autoencoder; at test time the encoder of a vision transformer learns to fill in hidden patches.

Most patches of an image are hidden at random. The encoder is given the others, a decoder predicts the hidden pixels,
normalised patch by patch, and the loss is their mean squared error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective
from ncttt.methods.shared import moved_parameters, own_pass
from ncttt.methods.ttt_mae.decoder import HEAD, Decoder
from ncttt.methods.ttt_mae.looking import find_entry
from ncttt.methods.ttt_mae.patches import blanked, chosen, normalised, patchify, random_split
from ncttt.model.branched import Branched, Features


@dataclass(frozen=True, kw_only=True)
class TTTMAE(Method):
    """Reconstruction of hidden patches, for vision transformers.

    `mask_ratio`: share of the patches that is hidden. `masks`: so many random masks of each image are learned from in a
    step at test time, at that many times the cost. `decoder_width` (a multiple of 32) and `decoder_depth`: of the
    decoder. `entry`: the layer whose input are the embedded patches with their positions, where hidden ones are left
    out; found by default. `moves`: `encoder`, `norm` or a layer's name, for everything up to and including it.
    """

    name: ClassVar[str] = "ttt_mae"
    title: ClassVar[str] = "TTT-MAE"
    place: ClassVar[float] = 85
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    branch_settings = ("decoder_width", "decoder_depth", "entry")

    steps: int = 20
    lr: float = 5e-3
    optimizer: str = "sgd"
    mask_ratio: float = 0.75
    masks: int = 1
    decoder_width: int = 64
    decoder_depth: int = 1
    entry: str | None = None
    moves: str = "encoder"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, least in {"masks": 1, "decoder_width": HEAD, "decoder_depth": 1}.items():
            value = getattr(self, field)
            if not isinstance(value, int) or value < least:
                raise InputError(f"{field} must be a whole number of at least {least}; found {value!r}")
        if self.decoder_width % HEAD:
            raise InputError(f"decoder_width must be a multiple of {HEAD}; found {self.decoder_width!r}")
        if not 0 < self.mask_ratio < 1:
            raise InputError(f"mask_ratio must lie between 0 and 1; found {self.mask_ratio!r}")

    def build_branch(self, model: Branched, features: Features, logits: Tensor) -> Decoder:
        if not isinstance(features, Tensor):
            raise InputError(f"the decoder of TTT-MAE follows one layer; found {len(features)}: {model.layers}")
        entry = find_entry(model, self.entry)
        assert model.input_shape is not None
        pixels = model.input_shape[0] * entry.size**2
        return Decoder(entry, features.shape[2], pixels, width=self.decoder_width, depth=self.decoder_depth)

    def training_loss(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> Tensor:
        """The loss of one mask of each image, in a pass of its own over the visible patches."""
        with own_pass(model):
            predicted, target = self.reconstructed(model, images)
        return (predicted - target).square().mean()

    def adaptation_loss(self, model: Branched, images: Tensor) -> Objective:
        predicted, target = self.reconstructed(model, images.repeat(self.masks, 1, 1, 1))
        return Objective((predicted - target).square().mean())

    def reconstructed(self, model: Branched, images: Tensor) -> tuple[Tensor, Tensor]:
        """What the decoder predicts of the hidden patches of a random mask of each image, and what is there.

        Both are `(B, M, pixels)`, normalised patch by patch. Hidden patches are blanked before the encoder looks at the
        image, because a convolutional stem would see across the borders of the visible ones.
        """
        branch = _branch(model)
        if images.shape[1:] != model.input_shape:
            raise InputError(f"the patches are those of images {model.input_shape}; found {tuple(images.shape[1:])}")
        visible, hidden = random_split(images, branch.entry.patches, self._hidden(branch.entry.patches))
        with branch.entry.keeping(model.classifier, visible):
            tokens = model.features(blanked(images, hidden, branch.entry.size, model.mean))
        assert isinstance(tokens, Tensor)
        if tokens.shape[1] != branch.entry.others + visible.shape[1]:
            raise InputError(f"patches could not be left out at {branch.entry.layer!r}; is it inside a compiled part?")
        target = chosen(normalised(patchify(images, branch.entry.size)), hidden)
        return branch(tokens, visible, hidden), target

    @torch.no_grad()
    def health(self, model: Branched, images: Tensor, features: Features, logits: Tensor) -> dict[str, Tensor]:
        """The share of the hidden pixels' variance within patches that the prediction explains; 0 for the mean."""
        with own_pass(model):
            predicted, target = self.reconstructed(model, images)
        return {"variance_explained": 1 - (predicted - target).square().mean() / target.square().mean()}

    def warnings(self, health: Mapping[str, float]) -> list[str]:
        explained = health["variance_explained"]
        if explained >= 0.05:
            return []
        return [f"the decoder explains {explained:.1%} of hidden patches, and their mean explains 0%; train longer"]

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return moved_parameters(model, self.moves)

    def _hidden(self, patches: int) -> int:
        """How many patches are hidden; one at least is, and one is not."""
        return min(max(round(self.mask_ratio * patches), 1), patches - 1)


def _branch(model: Branched) -> Decoder:
    assert isinstance(model.branch, Decoder)
    return model.branch
