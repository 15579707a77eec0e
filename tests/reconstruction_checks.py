"""Checks of TTT-MAE's promises, written so that planted faults make them fail, and transformers to try them on."""

import torch
from torch import Tensor, nn

import ncttt
from ncttt.methods.ttt_mae.patches import random_split
from ncttt.testing.cases import CLASSES, attached, images


class ClassTokenViT(nn.Module):
    """A transformer as in timm: a class token first, positions for all tokens, a dropout, blocks in a sequence."""

    def __init__(self, width: int = 16, last: bool = False):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, 4, stride=4)
        self.patch_norm = nn.LayerNorm(width)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 17, width))
        self.pos_drop = nn.Dropout(0.0)
        layer = {"d_model": width, "nhead": 2, "dim_feedforward": 32, "batch_first": True, "norm_first": True}
        self.blocks = nn.Sequential(*(nn.TransformerEncoderLayer(**layer) for _ in range(2)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)
        self.last = last

    def forward(self, pixels: Tensor) -> Tensor:
        tokens = self.patch_norm(self.patch_embed(pixels).flatten(2).transpose(1, 2))
        row = [self.cls_token.expand(len(tokens), -1, -1), tokens]
        tokens = torch.cat(row[::-1] if self.last else row, 1)
        tokens = self.norm(self.blocks(self.pos_drop(tokens + self.pos_embed)))
        return self.head(tokens[:, -1 if self.last else 0])


def slow_loss(model: ncttt.Branched, batch: Tensor, visible: Tensor, hidden: Tensor) -> Tensor:
    """The loss image by image, patch by patch, pixel by pixel; the encoder is run by hand on the visible patches."""
    net, decoder, errors = model.classifier, model.branch, []
    for image, seen, unseen in zip(batch, visible.tolist(), hidden.tolist(), strict=True):
        tokens = torch.stack([embedded(model, image, patch) for patch in seen])[None]
        tokens = decoder.embed(net.block1(tokens))[0]
        row = [token + decoder.position[0, patch] for token, patch in zip(tokens, seen, strict=True)]
        row += [decoder.mask[0, 0] + decoder.position[0, patch] for patch in unseen]
        decoded = decoder.norm(decoder.blocks(torch.stack(row)[None]))[0]
        for place, patch in enumerate(unseen):
            target = pixels_of(image, patch)
            target = (target - target.mean()) / (target.var(correction=0) + 1e-6).sqrt()
            errors.append((decoder.pixels(decoded[len(seen) + place]) - target).square().mean())
    return torch.stack(errors).mean()


def embedded(model: ncttt.Branched, image: Tensor, patch: int) -> Tensor:
    """The token of one patch with its position, from that patch's pixels alone."""
    row, column = divmod(patch, 4)
    tile = image[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
    tile = (tile - model.mean) / model.std
    return model.classifier.patches(tile[None]).flatten() + model.classifier.position[0, patch]


def pixels_of(image: Tensor, patch: int) -> Tensor:
    """The pixels of a patch of four by four, one after the other, each with its colours."""
    row, column = divmod(patch, 4)
    return torch.stack([image[c, 4 * row + y, 4 * column + x] for y in range(4) for x in range(4) for c in range(3)])


def check_reconstruction_equals_a_slow_one() -> None:
    method = ncttt.TTTMAE()
    model = attached("vit", method)
    batch = images(3)
    torch.manual_seed(5)
    visible, hidden = random_split(batch, 16, 12)
    expected = slow_loss(model, batch, visible, hidden)
    torch.manual_seed(5)
    assert torch.allclose(method.adaptation_loss(model, batch).loss, expected, atol=1e-5)
    torch.manual_seed(5)
    logits, features = model.forward_with_features(batch)
    assert torch.allclose(method.training_loss(model, batch, features, logits), expected, atol=1e-5)


def check_every_image_has_its_own_mask() -> None:
    """Each patch is hidden in about its share of the images, and no two of a few images have the same mask."""
    method = ncttt.TTTMAE(masks=2)
    model = attached("vit", method)
    seen: list[Tensor] = []
    forward = model.branch.forward

    def watched(tokens: Tensor, visible: Tensor, hidden: Tensor) -> Tensor:
        seen.append(hidden)
        return forward(tokens, visible, hidden)

    model.branch.forward = watched
    torch.manual_seed(0)
    for _ in range(2):
        method.adaptation_loss(model, images(200))
    masks = torch.cat(seen).sort(1).values
    assert masks.shape == (800, 12)
    assert len(masks[:8].unique(dim=0)) == 8, "images share a mask"
    assert len(torch.stack([masks[0], masks[200], masks[400]]).unique(dim=0)) == 3, "views or steps share a mask"
    shares = torch.bincount(masks.flatten(), minlength=16) / 800
    assert (shares - 0.75).abs().max() < 0.08, f"patches are hidden in {shares.tolist()} of the images"


def check_hidden_pixels_are_not_seen() -> None:
    """With a stem that looks across the borders of patches, the prediction does not depend on hidden pixels."""
    method = ncttt.TTTMAE()
    torch.manual_seed(0)
    net = ncttt.models.vit(num_classes=CLASSES, image_size=16, width=32, depth=1, heads=1)
    model = ncttt.attach(net, "norm", method, images(2)).eval()
    batch = images(2).requires_grad_()
    torch.manual_seed(1)
    _, hidden = random_split(batch, 16, 12)
    torch.manual_seed(1)
    predicted, _ = method.reconstructed(model, batch)
    (gradient,) = torch.autograd.grad(predicted.square().sum(), batch)
    for slopes, unseen in zip(gradient, hidden.tolist(), strict=True):
        for patch in range(16):
            slope = pixels_of(slopes, patch).abs().max()
            assert (slope == 0) == (patch in unseen), f"patch {patch} has a slope of {slope}"
