"""The entropy of each copy's prediction, or of the mean over the copies of an image, against a plain loop."""

from math import log

import pytest
import torch

import ncttt
from ncttt import InputError
from ncttt.methods.shared import entropies, mean_entropy
from ncttt.testing.cases import images, resnet


def slow(logits, copies):
    """The entropy of the mean prediction of each image, one by one."""
    each = logits.softmax(1)
    count = len(logits) // copies
    means = [sum(each[image + copy * count] for copy in range(copies)) / copies for image in range(count)]
    return sum(-(mean * mean.log()).sum() for mean in means) / count


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_it_is_the_entropy_of_the_mean_over_the_copies(copies):
    logits = torch.randn(5 * copies, 7, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(mean_entropy(logits, copies), slow(logits, copies))
    assert mean_entropy(logits, copies) > mean_entropy(logits)  # copies that disagree count as uncertainty


def test_copies_that_are_certain_of_different_classes():
    certain = torch.tensor([[100.0, 0.0], [0.0, 100.0]])
    assert mean_entropy(certain).item() == pytest.approx(0.0, abs=1e-6)
    assert mean_entropy(certain, copies=2).item() == pytest.approx(log(2))


def test_one_copy_is_the_same_to_the_bit():
    logits = torch.randn(9, 10)
    assert torch.equal(mean_entropy(logits, 1), entropies(logits).mean())


@pytest.mark.parametrize("kind", [ncttt.Tent, ncttt.NCTTT])
def test_a_step_lowers_it(kind):
    batch = images(32)
    method = kind(copies=2, entropy_of="mean", steps=3, lr=1e-3, mirror_mean=True)
    model = ncttt.attach(resnet(), "layer3" if kind.has_branch else None, method, batch)
    adapter = ncttt.Adapter(model)
    if kind is ncttt.Tent:
        adapter(batch)
        assert adapter.trace.losses == tuple(sorted(adapter.trace.losses, reverse=True))
    each = ncttt.Adapter(model, ncttt.methods.method_for(method, None, {"entropy_of": "each"}))
    assert not torch.equal(adapter(batch), each(batch))


def test_an_unknown_word_is_told():
    with pytest.raises(InputError, match="entropy_of must be one of each, mean; found 'all'"):
        ncttt.Tent(entropy_of="all")
