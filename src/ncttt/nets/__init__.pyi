from .catalogue import MODELS, build, resnet18, resnet20, resnet26, resnet34, resnet50, small, vit
from .resnet import ResNet, ResNet20
from .resnet9 import ResNet9
from .transformer import ViT

__all__ = [
    "MODELS",
    "ResNet",
    "ResNet9",
    "ResNet20",
    "ViT",
    "build",
    "resnet18",
    "resnet20",
    "resnet26",
    "resnet34",
    "resnet50",
    "small",
    "vit",
]
