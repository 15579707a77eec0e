"""NOTE: against a slow stream, and its rules one by one."""

import pytest
import torch

import ncttt
import stream_checks
import teacher_checks
from ncttt import InputError
from ncttt.methods.settings import method_from, settings_of
from ncttt.testing.cases import attached, images


@pytest.mark.parametrize(("architecture", "size"), [("resnet", 12), ("vgg", 4), ("vit", 1)])
@pytest.mark.filterwarnings("ignore:.*has no BatchNorm", "ignore:.*can make the model worse")
def test_it_equals_a_slow_stream(architecture, size):
    teacher_checks.check_note_equals_a_slow_one(architecture, size)


def test_its_loss_is_averaged_over_images_and_summed_over_classes():
    teacher_checks.check_note_s_loss()


def test_domains_are_independent():
    stream_checks.check_domains_are_independent(ncttt.NOTE(capacity=8, every=12))


def test_the_prediction_of_an_image_does_not_depend_on_its_batch():
    adapter = ncttt.Adapter(attached("resnet", ncttt.NOTE()))
    together = adapter(images(6))
    alone = torch.cat([adapter(image) for image in images(6).split(1)])
    torch.testing.assert_close(together, alone)


def test_before_a_step_it_is_the_policy_alone():
    model = attached("resnet", ncttt.NOTE())
    expected = ncttt.Adapter(model, ncttt.PTBN(norm="instance(4)"))(images(6))
    torch.testing.assert_close(ncttt.Adapter(model)(images(6)), expected)


def test_the_network_s_own_buffers_stay():
    adapter = ncttt.Adapter(attached("resnet", ncttt.NOTE(capacity=6, every=6)), protocol="online")
    source = {name: value.clone() for name, value in adapter.model.classifier.named_buffers()}
    for seed in range(3):
        adapter(images(6, seed))
    assert all(torch.equal(value, source[name]) for name, value in adapter.model.classifier.named_buffers())
    moved = adapter.model.memory.statistics.named()
    assert not any(torch.equal(value, source[name]) for name, value in moved.items())


def test_statistics_of_each_image_cannot_be_baked():
    adapter = ncttt.Adapter(attached("resnet", ncttt.NOTE()))
    adapter(images(3))
    with pytest.raises(InputError, match="cannot be baked"):
        adapter.bake()


def test_its_settings_are_read_back():
    assert method_from(settings_of(ncttt.NOTE(lr=0.1))) == ncttt.NOTE(lr=0.1)
