"""ResNet-11: ResNet-9 of the fast-CIFAR line of work, with a residual pair in the third stage too, and narrower."""

from typing import Any

from torch import Tensor, nn

from ncttt.models.resnet import conv3x3


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


class ResNet11(nn.Module):
    """Four stages `layer1` .. `layer4` of 1, 2, 4 and 8 times `width` channels, all but the first residual."""

    architecture: dict[str, Any]

    def __init__(self, num_classes: int, width: int):
        super().__init__()
        self.layer1 = ConvBlock(3, width)
        self.layer2 = nn.Sequential(ConvBlock(width, 2 * width, pool=True), Residual(2 * width))
        self.layer3 = nn.Sequential(ConvBlock(2 * width, 4 * width, pool=True), Residual(4 * width))
        self.layer4 = nn.Sequential(ConvBlock(4 * width, 8 * width, pool=True), Residual(8 * width))
        self.maxpool = nn.AdaptiveMaxPool2d(1)
        self.fc = nn.Linear(8 * width, num_classes)
        nn.init.normal_(self.fc.weight, std=0.01)  # maxima are large: as usually drawn, training begins far astray

    def forward(self, images: Tensor) -> Tensor:
        features = self.layer4(self.layer3(self.layer2(self.layer1(images))))
        return self.fc(self.maxpool(features).flatten(1))
