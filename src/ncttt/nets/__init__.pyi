from .catalogue import MODELS, build, resnet18, resnet20, resnet26, resnet34, resnet50, small
from .resnet import ResNet
from .resnet9 import ResNet9
from .resnet_cifar import ResNet20

__all__ = [
    "MODELS",
    "ResNet",
    "ResNet9",
    "ResNet20",
    "build",
    "resnet18",
    "resnet20",
    "resnet26",
    "resnet34",
    "resnet50",
    "small",
]
