"""CIFAR-10 itself, fetched, and a network trained elsewhere that must score on it what it scored there."""

import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from ncttt.cli import main
from ncttt.data import batches, load
from ncttt.data.checking import check

pytestmark = pytest.mark.network


def test_the_command_fetches_sixty_thousand_verified_images(tmp_path, capsys):
    start = time.monotonic()
    assert main(["data", "get", "cifar10", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "cifar-10-batches-bin")
    assert time.monotonic() - start < 300
    assert set(check("cifar10", tmp_path).values()) == {"ok"}
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]


def test_the_official_numbers_of_images(cifar10_root):
    train, test = load("cifar10", "train", cifar10_root), load("cifar10", "test", cifar10_root)
    assert np.bincount(train.labels).tolist() == [5000] * 10
    assert np.bincount(test.labels).tolist() == [1000] * 10
    # The published per-channel mean of the training images.
    assert np.asarray(train.images).mean((0, 1, 2)) / 255 == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)


def test_the_validation_part_is_balanced(cifar10_root):
    fit, val = load("cifar10", "fit", cifar10_root), load("cifar10", "val", cifar10_root)
    assert np.bincount(val.labels).tolist() == [500] * 10
    assert np.bincount(fit.labels).tolist() == [4500] * 10


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.extra = stride, (outputs - inputs) // 2

    def forward(self, x: Tensor) -> Tensor:
        shortcut = F.pad(x[:, :, :: self.stride, :: self.stride], [0, 0, 0, 0, self.extra, self.extra])
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet20(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.linear = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        mean, std = images.new_tensor([0.485, 0.456, 0.406]), images.new_tensor([0.229, 0.224, 0.225])
        x = (images - mean[:, None, None]) / std[:, None, None]
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))


@pytest.mark.shared
@torch.inference_mode()
def test_a_network_trained_elsewhere_scores_what_it_should(shared, cifar10_root):
    model = ResNet20().eval().to(memory_format=torch.channels_last)
    model.load_state_dict(load_file(shared / "models/resnet20-cifar10.safetensors"))
    right = sum(
        int((model(images).argmax(1) == labels).sum())
        for images, labels in batches(load("cifar10", "test", cifar10_root), 500)
    )
    print(f"ResNet-20: {right / 100:.2f} %")
    assert right / 10_000 == pytest.approx(0.917, abs=0.001)
