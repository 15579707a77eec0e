"""RoTTA: against a slow stream, and its rules one by one."""

import pytest
import torch
from torch import nn

import ncttt
import stream_checks
import teacher_checks
from ncttt import InputError
from ncttt.methods.settings import method_from, settings_of
from ncttt.testing.cases import attached, images, resnet


def online(method: ncttt.Method, **settings) -> ncttt.Adapter:
    return ncttt.Adapter(attached("resnet", method), protocol="online", **settings)


@pytest.mark.parametrize(("architecture", "size"), [("resnet", 12), ("vgg", 4), ("vit", 1)])
@pytest.mark.filterwarnings("ignore:.*has no BatchNorm", "ignore:.*can make the model worse")
def test_it_equals_a_slow_stream(architecture, size):
    teacher_checks.check_rotta_equals_a_slow_one(architecture, size)


def test_domains_are_independent():
    stream_checks.check_domains_are_independent(ncttt.RoTTA(capacity=8, every=12))


def test_a_reset_forgets_the_teacher():
    teacher_checks.check_a_reset_forgets_the_teacher(ncttt.RoTTA(capacity=8, every=12, kept=0.5))


def test_the_teacher_s_statistics_follow_the_memory_and_the_network_s_own_stay():
    adapter = online(ncttt.RoTTA(capacity=6, every=6))
    source = {name: value.clone() for name, value in adapter.model.classifier.named_buffers()}
    adapter(images(6))
    memory = adapter.model.memory
    held = memory.images[memory.filled].clone()
    adapter(images(6, seed=1))
    assert all(torch.equal(value, source[name]) for name, value in adapter.model.classifier.named_buffers())
    name, layer = next(
        (name, part) for name, part in adapter.model.classifier.named_modules() if isinstance(part, nn.BatchNorm2d)
    )
    inputs = []
    hook = layer.register_forward_pre_hook(lambda module, given: inputs.append(given[0]))
    with torch.no_grad():
        adapter.model(held)  # what comes before the first BatchNorm does not move
    hook.remove()
    taught, learned = (values.named()[f"{name}.running_mean"] for values in (memory.teacher, memory.student))
    torch.testing.assert_close(taught, 0.95 * source[f"{name}.running_mean"] + 0.05 * inputs[0].mean((0, 2, 3)))
    assert not torch.allclose(taught, learned)  # the student has seen augmentations


def test_weights_by_age_are_those_of_the_sigmoid():
    adapter = online(ncttt.RoTTA(capacity=6, every=6), lr=0.0)
    adapter(images(6))
    losses = []
    for age in (0, 6):
        adapter.model.memory.ages.fill_(age)
        state = adapter.state_dict()
        adapter(images(6, seed=1))
        losses.append(adapter.trace.losses[0])
        adapter.load_state_dict(state)
    assert losses[0] / losses[1] == pytest.approx(0.5 / (1 / (1 + torch.tensor(1.0).exp().item())), rel=1e-5)


def test_images_that_were_normalised_outside_are_refused():
    adapter = ncttt.Adapter(
        ncttt.attach(resnet(), None, ncttt.RoTTA(capacity=6, every=6), images(2)), protocol="online"
    )
    adapter(images(6) * 6 - 3)
    with pytest.raises(InputError, match=r"augmentations of RoTTA need images in \[0, 1\]"):
        adapter(images(6))


def test_its_settings_are_read_back():
    assert method_from(settings_of(ncttt.RoTTA(kept=0.9))) == ncttt.RoTTA(kept=0.9)
    with pytest.raises(InputError, match="kept must be"):
        ncttt.RoTTA(kept=2)
