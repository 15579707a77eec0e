"""Copies of a batch: what they are made of."""

import pytest
import torch
import torch.nn.functional as F

import ncttt
from ncttt import InputError
from ncttt.adapt.batch import shifted_copies
from ncttt.testing.cases import images, resnet


def test_copies_are_the_images_mirrored_and_shifted():
    batch = torch.rand(2, 3, 32, 32)
    whole, mirrored, shifted, both = shifted_copies(batch, 4).chunk(4)
    assert whole.equal(batch)
    assert mirrored.equal(batch.flip(3))
    padded = F.pad(batch, [2] * 4, mode="reflect")
    windows = [padded[:, :, top : top + 32, left : left + 32] for top in range(5) for left in range(5)]
    assert sum(shifted.equal(window) for window in windows) == 1
    assert sum(both.equal(window.flip(3)) for window in windows) == 1


def test_copies_need_not_be_mirrored_and_one_is_the_batch_itself():
    batch = torch.rand(2, 3, 32, 32)
    padded = F.pad(batch, [2] * 4, mode="reflect")
    _, *shifted = shifted_copies(batch, 3, mirrored=False).chunk(3)
    for copy in shifted:
        assert any(copy.equal(padded[:, :, t : t + 32, s : s + 32]) for t in range(5) for s in range(5))
    assert shifted_copies(batch, 1) is batch


def test_jitter_shifts_the_first_mirrored_copy_too():
    batch = torch.rand(2, 3, 32, 32)
    padded = F.pad(batch, [2] * 4, mode="reflect")
    windows = [padded[:, :, top : top + 32, left : left + 32].flip(3) for top in range(5) for left in range(5)]
    torch.manual_seed(0)
    made = [shifted_copies(batch, 2, jitter=True).chunk(2) for _ in range(8)]
    assert all(whole.equal(batch) for whole, _ in made)
    assert all(sum(copy.equal(window) for window in windows) == 1 for _, copy in made)
    assert any(not copy.equal(batch.flip(3)) for _, copy in made)


def test_a_step_learns_from_a_share_of_the_batch_and_all_of_it_is_predicted():
    net, batch, settings = resnet(), images(6), {"lr": 1e-2, "norm": "source"}
    first = ncttt.Adapter(net, ncttt.Tent(**settings), protocol="continual")
    first(batch[:3])  # a step on three images
    part = ncttt.Adapter(net, ncttt.Tent(share=0.4, **settings))  # 0.4 of six, rounded up
    torch.testing.assert_close(part(batch), first.predict_at([0], batch)[0])
    assert not torch.equal(part(batch), ncttt.Adapter(net, ncttt.Tent(**settings))(batch))


def test_logits_from_before_a_step_on_a_part_are_those_of_the_whole_batch():
    batch = images(6)
    before = ncttt.Adapter(resnet(), ncttt.Tent(returns="before", share=0.5, copies=2, mirror_mean=True))(batch)
    assert before.shape[0] == 6


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan")])
def test_a_share_is_above_zero_and_at_most_one(share):
    with pytest.raises(InputError, match="share must be above 0 and at most 1"):
        ncttt.Tent(share=share)
