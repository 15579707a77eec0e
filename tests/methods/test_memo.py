"""MEMO: its step by a slow loop, its loss by torch-ttt's, its augmentations by Pillow's."""

import math
import sys
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from test_peers import peer_engine
from torch import Tensor, nn

import ncttt
import stream_checks
from ncttt import InputError
from ncttt.methods import memo
from ncttt.methods.memo.augmix import augmix, equalised, posterised, solarised, stretched, warped
from ncttt.methods.settings import method_from, settings_of
from ncttt.methods.shared import marginal_entropies
from ncttt.testing.cases import CLASSIFIERS, Case, attached, images, resnet
from ncttt.testing.contract import check_loss_falls_on_its_own_batch


@pytest.mark.parametrize("count", [1, 3])
def test_a_step_equals_a_slow_one(count):
    stream_checks.check_memo_equals_a_slow_one(count)


def test_the_statistics_have_a_prior_of_sixteen_images():
    assert ncttt.norm.batch_share(ncttt.MEMO().norm) == pytest.approx(1 / 17)


def test_the_loss_is_that_of_torch_ttt():
    pytest.importorskip("torch_ttt")
    with patch.dict(sys.modules, {name: ModuleType(name) for name in ("torchvision", "torchvision.transforms")}):
        theirs = peer_engine("memo")._marginal_entropy
    logits = torch.randn(3, 8, 5, generator=torch.Generator().manual_seed(0))
    expected, _ = theirs(None, logits.transpose(0, 1))  # views first, and the mean over images
    torch.testing.assert_close(marginal_entropies(logits).mean(), expected)


def test_the_marginal_entropy_by_hand():
    sure = torch.tensor([[[50.0, 0.0], [0.0, 50.0]], [[50.0, 0.0], [50.0, 0.0]]])
    torch.testing.assert_close(marginal_entropies(sure), torch.tensor([math.log(2), 0.0]))


@pytest.mark.parametrize("architecture", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore:.*has no BatchNorm")
def test_the_loss_falls_where_the_views_stay(architecture, monkeypatch):
    monkeypatch.setattr(memo, "augmix", stream_checks.mirrored_in_turn)
    check_loss_falls_on_its_own_batch(Case(architecture, ncttt.MEMO(views=4)))


def eight_bits(count: int = 3, size: int = 16) -> tuple[Tensor, list[Image.Image]]:
    """Images of whole levels, not all of which occur, as tensors and as Pillow has them."""
    levels = np.random.default_rng(0).integers(20, 230, (count, size, size, 3)).astype(np.uint8)
    return torch.from_numpy(levels).permute(0, 3, 1, 2).double() / 255, [Image.fromarray(each) for each in levels]


def as_tensor(made: list[Image.Image]) -> Tensor:
    return torch.stack([torch.from_numpy(np.array(each)).permute(2, 0, 1).double() / 255 for each in made])


def test_changes_of_levels_are_pillows():
    floats, pillow = eight_bits()
    one_level = 1.01 / 255
    torch.testing.assert_close(
        stretched(floats), as_tensor([ImageOps.autocontrast(each) for each in pillow]), rtol=0, atol=one_level
    )
    torch.testing.assert_close(posterised(floats), as_tensor([ImageOps.posterize(each, 4) for each in pillow]))
    bright = floats * 1.1
    torch.testing.assert_close(
        solarised(bright, torch.ones(3).double()), torch.where(bright >= 0.9, 1 - bright, bright)
    )
    # Pillow rounds its steps down to whole counts of pixels, so its levels are a few off an even spread.
    floats, pillow = eight_bits(size=96)
    torch.testing.assert_close(
        equalised(floats), as_tensor([ImageOps.equalize(each) for each in pillow]), rtol=0, atol=0.05
    )


def test_flat_images_stay():
    flat = torch.full((2, 3, 8, 8), 0.25)
    assert torch.equal(stretched(flat), flat)
    assert torch.equal(equalised(flat), flat)


def test_changes_of_geometry():
    batch = images(6, size=30).double()
    kinds = torch.tensor([-4, -1, 3, 4, 0, 1])
    moved = warped(batch, kinds, torch.ones(6).double())
    assert torch.equal(moved[:2], batch[:2])
    torch.testing.assert_close(moved[2, :, :, :-1], batch[2, :, :, 1:])  # a thirtieth is one pixel here
    torch.testing.assert_close(moved[3, :, :-1], batch[3, :, 1:])
    smooth = torch.linspace(0, 1, 30).expand(1, 3, 30, 30).double()
    there = warped(smooth, torch.tensor([0]), torch.ones(1).double())
    back = warped(there, torch.tensor([0]), -torch.ones(1).double())
    torch.testing.assert_close(back[:, :, 5:-5, 5:-5], smooth[:, :, 5:-5, 5:-5], rtol=0, atol=1e-3)
    assert not torch.allclose(there, smooth, atol=1e-3)


def test_every_view_is_another_one_of_the_same_range():
    batch = images(1).expand(64, -1, -1, -1)
    torch.manual_seed(0)
    views = augmix(batch)
    assert 0 <= views.min() <= views.max() <= 1
    assert len({tuple(view.flatten().tolist()) for view in views}) == 64
    torch.manual_seed(0)
    assert torch.equal(augmix(batch), views)


def test_views_of_an_image_stay_with_it(monkeypatch):
    """Black and white images, whose augmentations cannot be mistaken for one another's."""
    seen = []
    monkeypatch.setattr(memo, "augmix", lambda views: seen.append(views) or views)
    ncttt.Adapter(resnet(), ncttt.MEMO(views=3))(torch.stack([torch.zeros(3, 16, 16), torch.ones(3, 16, 16)]))
    assert seen[0].mean((1, 2, 3)).tolist() == [0, 0, 0, 1, 1, 1]


def test_all_weights_move():
    model = attached("resnet", ncttt.MEMO())
    assert ncttt.MEMO().parameters(model).keys() == dict(model.classifier.named_parameters()).keys()


@pytest.mark.parametrize("views", [0, -1, 2.5])
def test_views_are_a_number(views):
    with pytest.raises(InputError, match="views must be a whole number of at least 1; found"):
        ncttt.MEMO(views=views)


def test_what_cannot_be_is_one_line_and_settings_are_saved():
    with pytest.raises(InputError, match=r"augmentations of MEMO need images in \[0, 1\]; found"):
        ncttt.Adapter(resnet(), ncttt.MEMO())(images(4) * 4 - 2)
    with pytest.raises(InputError, match="nothing to move"):
        ncttt.Adapter(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), ncttt.MEMO())
    assert method_from(settings_of(ncttt.MEMO(views=8))) == ncttt.MEMO(views=8)
