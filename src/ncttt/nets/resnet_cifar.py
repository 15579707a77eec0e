"""ResNet-20 of the CIFAR line: three stages of three blocks, shortcuts without weights."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.nets.resnet import conv3x3


class PaddedBlock(nn.Module):
    """Two 3x3 convolutions; the shortcut subsamples and pads the channels with zeros."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = conv3x3(outputs, outputs)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.padding = stride, (outputs - inputs) // 2

    def forward(self, features: Tensor) -> Tensor:
        shortcut = features[:, :, :: self.stride, :: self.stride]
        shortcut = F.pad(shortcut, [0, 0, 0, 0, self.padding, self.padding])
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(features))))) + shortcut)


class ResNet20(nn.Module):
    """Stages `layer1` .. `layer3` of 16, 32 and 64 channels for 32-pixel images, and a classifier `linear`."""

    architecture: dict[str, Any]

    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.conv1 = conv3x3(3, 16)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*(PaddedBlock(16, 16, 1) for _ in range(3)))
        self.layer2 = nn.Sequential(PaddedBlock(16, 32, 2), PaddedBlock(32, 32, 1), PaddedBlock(32, 32, 1))
        self.layer3 = nn.Sequential(PaddedBlock(32, 64, 2), PaddedBlock(64, 64, 1), PaddedBlock(64, 64, 1))
        self.linear = nn.Linear(64, num_classes)
        self.architecture = {"name": "resnet20", "num_classes": num_classes}

    def forward(self, images: Tensor) -> Tensor:
        out = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(images))))))
        return self.linear(out.mean((2, 3)))
