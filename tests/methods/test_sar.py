"""SAR: against a slow stream that moves weights by hand, its recovery, and the layers that it leaves out."""

import math

import pytest
import torch
from torch import nn

import ncttt
import stream_checks
from ncttt import InputError, models
from ncttt.methods.sar import MeanLoss, norms_before_last_stage
from ncttt.methods.settings import method_from, settings_of
from ncttt.model.branched import NORMALISATIONS
from ncttt.testing.cases import ViT, images, resnet, vgg
from stream_checks import BATCHES, confident


@pytest.mark.parametrize("architecture", ["resnet", "vgg", "vit"])
def test_it_equals_a_slow_stream(architecture):
    stream_checks.check_sar_equals_a_slow_one(architecture)


def test_the_recovery_knows_how_many_classes_there_are():
    stream_checks.check_sar_recovers_by_the_number_of_classes()


def test_after_a_recovery_the_stream_is_as_at_its_beginning():
    model = confident(ncttt.SAR())
    adapter = ncttt.Adapter(model, ncttt.SAR(recovery=10.0), protocol="online")
    rows = [adapter(BATCHES[0].double()) for _ in range(3)]
    assert torch.equal(rows[0], rows[1])
    assert torch.equal(rows[0], rows[2])


def test_without_a_distance_it_is_entropy_of_certain_images():
    model = confident(ncttt.SAR(rho=0.0))
    adapter = ncttt.Adapter(model)
    logits = adapter(BATCHES[0].double())
    values = [stream_checks.entropy(row).item() for row in logits]
    kept = [value for value in values if value < 0.4 * math.log(5)]
    assert 0 < len(kept) < len(values)
    assert adapter.trace.losses[0] == pytest.approx(sum(kept) / len(kept), abs=1e-8)


def test_the_moving_mean():
    memory = MeanLoss()
    for share in (0.5, 0.1):
        memory.move(torch.tensor(share))
    assert memory.mean.item() == pytest.approx(0.9 * 0.5 + 0.1 * 0.1)


def blocks(count: int) -> nn.Module:
    """The shape of a vision transformer: many blocks alike and a last normalisation."""

    def block() -> nn.Module:
        return nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8))

    return nn.ModuleDict({"blocks": nn.Sequential(*[block() for _ in range(count)]), "norm": nn.LayerNorm(8)})


@pytest.mark.parametrize(
    ("network", "left_out"),
    [
        (models.resnet18(), {"layer4"}),
        (models.resnet26gn(), {"layer3", "bn"}),
        (nn.Sequential(nn.Identity(), models.resnet18()), {"1.layer4"}),
        (resnet(), {"layer4"}),
        (vgg(), {"9"}),
        (ViT(), {"block2", "norm"}),
        (blocks(12), {"blocks.9", "blocks.10", "blocks.11", "norm"}),
    ],
)
def test_the_last_stage_is_found_by_structure(network, left_out):
    every = {name for name, part in network.named_modules() if isinstance(part, NORMALISATIONS)}
    missing = every - norms_before_last_stage(network)
    assert missing == {name for name in every if any(f"{name}.".startswith(f"{stage}.") for stage in left_out)}


def test_a_network_of_one_stage_moves_all_of_it():
    assert norms_before_last_stage(nn.BatchNorm2d(3)) == {""}
    assert norms_before_last_stage(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))) == {"1"}
    assert norms_before_last_stage(nn.Linear(2, 2)) == set()


def test_it_runs_twice_a_batch_and_predicts_by_the_first_pass():
    adapter = ncttt.Adapter(resnet(), ncttt.SAR(margin=1.0))
    count = []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    logits = adapter(images(6))
    assert len(count) == 2
    assert torch.equal(logits, adapter.predict_at([0], images(6))[0])


def test_a_batch_without_certain_images_teaches_nothing():
    adapter = ncttt.Adapter(resnet(), ncttt.SAR(margin=0.0), protocol="online")
    adapter(images(6))
    assert (adapter.trace.stopped, adapter.trace.reset) == ("nothing to learn", False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rho": -0.05}, "rho must be a finite number of at least 0; found -0.05"),
        ({"margin": math.inf}, "margin must be a finite number"),
        ({"recovery": -1.0}, "recovery must be a finite number"),
        ({"rho": "far"}, "rho must be a finite number"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ncttt.SAR(**settings)


def test_a_network_without_normalisation_and_saved_settings():
    with pytest.raises(InputError, match="SAR moves scale and shift of normalisation layers; found none in Sequential"):
        ncttt.Adapter(nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), ncttt.SAR())
    assert method_from(settings_of(ncttt.SAR(rho=0.1))) == ncttt.SAR(rho=0.1)
