"""ResNet-9: the network of the fast-CIFAR line of work, whose accuracy per multiplication is hard to beat."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ncttt.nets.resnet import conv3x3


class ConvBlock(nn.Sequential):
    """Convolution, optional 2x2 max-pooling, BatchNorm and ReLU.

    Pooling comes before the BatchNorm, which has a quarter of the values to read then and learns the same functions.
    """

    def __init__(self, inputs: int, outputs: int, pool: bool = False):
        pooling = [nn.MaxPool2d(2)] if pool else []
        super().__init__(conv3x3(inputs, outputs), *pooling, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class Residual(nn.Module):
    """Two blocks whose result is added to their input."""

    def __init__(self, width: int):
        super().__init__()
        self.block1 = ConvBlock(width, width)
        self.block2 = ConvBlock(width, width)

    def forward(self, features: Tensor) -> Tensor:
        return features + self.block2(self.block1(features))


class ResNet9(nn.Module):
    """Four stages `layer1` .. `layer4` of `growth` times `width` channels, the second and fourth residual."""

    architecture: dict[str, Any]

    def __init__(self, num_classes: int, width: int, growth: Sequence[int]):
        super().__init__()
        first, second, third, fourth = (width * times for times in growth)
        self.layer1 = ConvBlock(3, first)
        self.layer2 = nn.Sequential(ConvBlock(first, second, pool=True), Residual(second))
        self.layer3 = ConvBlock(second, third, pool=True)
        self.layer4 = nn.Sequential(ConvBlock(third, fourth, pool=True), Residual(fourth))
        self.maxpool = nn.AdaptiveMaxPool2d(1)
        self.fc = nn.Linear(fourth, num_classes)
        nn.init.normal_(self.fc.weight, std=0.01)  # maxima are large: as usually drawn, training begins far astray

    def forward(self, images: Tensor) -> Tensor:
        features = self.layer4(self.layer3(self.layer2(self.layer1(images))))
        return self.fc(self.maxpool(features).flatten(1))
