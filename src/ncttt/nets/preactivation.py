"""ResNet-26 with GroupNorm for 32-pixel images: pre-activation blocks, whose shortcuts have no weights.

It is the CIFAR network of TTT and MEMO. Normalising each image for itself, it has no batch statistics to exchange.
"""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.nets.resnet import conv3x3

GROUPS = 8


class PreActivationBlock(nn.Module):
    """Twice GroupNorm, ReLU and a 3x3 convolution, added to the input.

    Where the block strides or widens, the input is averaged over the stride, and zero channels are appended. Layers
    have the names of published weights, in which a norm is called `bn` whatever its kind.
    """

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.bn1 = nn.GroupNorm(GROUPS, inputs)
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.bn2 = nn.GroupNorm(GROUPS, outputs)
        self.conv2 = conv3x3(outputs, outputs)
        self.stride, self.padding = stride, outputs - inputs

    def forward(self, features: Tensor) -> Tensor:
        out = self.conv2(F.relu(self.bn2(self.conv1(F.relu(self.bn1(features))))))
        shortcut = F.avg_pool2d(features, self.stride) if self.stride > 1 else features
        return out + F.pad(shortcut, [0, 0, 0, 0, 0, self.padding])


class ResNet26GN(nn.Module):
    """Stages `layer1` .. `layer3` of four blocks and 16, 32 and 64 channels, a last norm, and a classifier `fc`."""

    architecture: dict[str, Any]

    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.conv1 = conv3x3(3, 16)
        self.layer1, self.layer2, self.layer3 = _stage(16, 16, 1), _stage(16, 32, 2), _stage(32, 64, 2)
        self.bn = nn.GroupNorm(GROUPS, 64)
        self.fc = nn.Linear(64, num_classes)
        self.architecture = {"name": "resnet26gn", "num_classes": num_classes}

    def forward(self, images: Tensor) -> Tensor:
        features = self.layer3(self.layer2(self.layer1(self.conv1(images))))
        return self.fc(F.relu(self.bn(features)).mean((2, 3)))


def _stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    rest = [PreActivationBlock(outputs, outputs, 1) for _ in range(3)]
    return nn.Sequential(PreActivationBlock(inputs, outputs, stride), *rest)
