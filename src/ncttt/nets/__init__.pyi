from .catalogue import MODELS, build, resnet18, resnet20, resnet26, resnet26gn, resnet34, resnet50, small, vit
from .preactivation import ResNet26GN
from .resnet import ResNet, ResNet20
from .resnet9 import ResNet9
from .transformer import ViT

__all__ = [
    "MODELS",
    "ResNet",
    "ResNet9",
    "ResNet20",
    "ResNet26GN",
    "ViT",
    "build",
    "resnet18",
    "resnet20",
    "resnet26",
    "resnet26gn",
    "resnet34",
    "resnet50",
    "small",
    "vit",
]
