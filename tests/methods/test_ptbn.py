"""PTBN: its blend lies between the source and the batch, and its ends are exactly these."""

import pytest
import torch

import ncttt
from ncttt.testing.cases import attached, images


def predicted(method: ncttt.Method) -> torch.Tensor:
    return ncttt.Adapter(attached("resnet", method))(images(8))


def test_the_ends_of_the_blend_are_batch_and_source():
    torch.testing.assert_close(predicted(ncttt.PTBN(norm="blend(1.0)")), predicted(ncttt.PTBN()))
    torch.testing.assert_close(predicted(ncttt.PTBN(norm="blend(0.0)")), predicted(ncttt.Source()))


def test_a_blend_is_neither():
    blended = predicted(ncttt.PTBN(norm="blend(0.5)"))
    assert not torch.allclose(blended, predicted(ncttt.PTBN()))
    assert not torch.allclose(blended, predicted(ncttt.Source()))


def test_batch_statistics_are_those_of_a_network_in_training_mode():
    model = attached("resnet", ncttt.PTBN())
    logits = ncttt.Adapter(model)(images(8))
    with torch.no_grad():
        torch.testing.assert_close(logits, model.train()(images(8)))


def test_a_prior_of_source_images_is_a_blend():
    assert ncttt.PTBN(norm=ncttt.norm.blend(8 / (8 + 24))).norm == "blend(0.25)"
    with pytest.raises(ncttt.InputError, match="no statistics policy 'blend\\(2\\)'"):
        ncttt.PTBN(norm="blend(2)")
