"""`layer="auto"`: the last stage of networks of all kinds, found by shapes alone."""

import pytest
import torch
from torch import nn

import ncttt
from ncttt import InputError, models
from ncttt.model.last_stage import last_stage
from ncttt.testing.cases import CLASSES, assert_same, fingerprint, images, vgg

EXPECTED = {
    "resnet18": "layer4",
    "resnet20": "layer3",
    "resnet26gn": "bn",
    "resnet50": "layer4",
    "small": "layer4",
    "vit": "norm",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_our_networks_are_read_at_their_last_stage(name):
    assert last_stage(models.build(name), images(2, size=32)) == EXPECTED[name]


def test_the_model_has_the_real_name_and_the_classifier_is_as_before(tmp_path):
    net = models.small(num_classes=CLASSES, width=4)
    before = fingerprint(net)
    model = ncttt.attach(net, "auto", ncttt.NCTTT(hidden=8), images(2, size=32), [0.5] * 3, [0.25] * 3)
    assert_same(before, fingerprint(net))
    assert model.layer == "layer4"
    assert model.features(images(3, size=32)).shape == (3, 32, 4, 4)
    ncttt.save(model, tmp_path)
    assert ncttt.load(tmp_path).layer == "layer4"


def test_a_sequence_without_names_is_read_before_its_last_pooling():
    net = vgg()
    assert last_stage(net, images(2)) == "10"
    assert isinstance(net[10], nn.ReLU)
    assert isinstance(net[11], nn.MaxPool2d)  # gives 2x2 positions, too


def head(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(channels, CLASSES))


def block(inputs: int, outputs: int, inplace: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace))


def test_of_a_trunk_with_stages_it_is_the_last_stage_and_what_changes_nothing_is_passed_over():
    trunk = nn.Sequential(block(3, 4), nn.Sequential(block(4, 8), nn.Dropout()))
    net = nn.Sequential(trunk, nn.Identity(), nn.Dropout(), head(8))
    assert last_stage(net, images(2)) == "0.1"


def test_a_layer_that_is_changed_in_place_is_not_chosen():
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.early, self.late, self.head = block(3, 4), nn.Conv2d(4, 8, 3), head(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(nn.functional.relu(self.late(self.early(x)), inplace=True))

    assert last_stage(Functional(), images(2)) == "early"
    ncttt.attach(Functional(), "auto", ncttt.NCTTT(hidden=8), images(2)).features(images(2))


def test_maps_with_channels_last_and_networks_without_positions_are_errors():
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, CLASSES)
            self.stem = nn.Conv2d(3, 8, 4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.norm(self.stem(x).permute(0, 2, 3, 1)).mean((1, 2)))

    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, CLASSES))
    for net in (Rows(), flat):
        with pytest.raises(InputError, match=r"layer='auto' finds no feature map .* name a layer"):
            ncttt.attach(net, "auto", ncttt.NCTTT(), images(2))
