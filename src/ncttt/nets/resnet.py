"""Residual networks: torchvision's kinds for 32-pixel or 224-pixel images, and ResNet-20 of the CIFAR line."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F


def conv3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A 3x3 convolution that keeps the size, or divides it by the stride."""
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


def conv1x1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A 1x1 convolution."""
    return nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int = 1):
        super().__init__()
        self.conv1 = conv3x3(inputs, width, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(width, width)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width * self.expansion, stride)

    def forward(self, features: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(features)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + (features if self.downsample is None else self.downsample(features)))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut; the stride sits on the 3x3, as in torchvision."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int = 1):
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = conv1x1(inputs, width)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = conv3x3(width, width, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = conv1x1(width, outputs)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, features: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(features)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + (features if self.downsample is None else self.downsample(features)))


Block = type[BasicBlock] | type[Bottleneck]


class ResNet(nn.Module):
    """Four stages `layer1` .. `layer4` after a stem that fits the image size, and a linear classifier `fc`."""

    architecture: dict[str, Any]

    def __init__(self, block: Block, depths: Sequence[int], num_classes: int, image_size: int = 224, width: int = 64):
        super().__init__()
        small = image_size <= 64
        self.conv1 = conv3x3(3, width) if small else nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        widths = [width, 2 * width, 4 * width, 8 * width]
        inputs = [width] + [w * block.expansion for w in widths]
        self.layer1 = _stage(block, inputs[0], widths[0], depths[0], stride=1)
        self.layer2 = _stage(block, inputs[1], widths[1], depths[1], stride=2)
        self.layer3 = _stage(block, inputs[2], widths[2], depths[2], stride=2)
        self.layer4 = _stage(block, inputs[3], widths[3], depths[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs[4], num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        out = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        out = self.layer4(self.layer3(self.layer2(self.layer1(out))))
        return self.fc(self.avgpool(out).flatten(1))


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(conv1x1(inputs, outputs, stride), nn.BatchNorm2d(outputs))


def _stage(block: Block, inputs: int, width: int, depth: int, stride: int) -> nn.Sequential:
    blocks = [block(inputs, width, stride)]
    blocks += [block(width * block.expansion, width) for _ in range(depth - 1)]
    return nn.Sequential(*blocks)


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
