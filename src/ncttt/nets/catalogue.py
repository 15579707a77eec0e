"""Networks by name. Each remembers how it was made, so that a checkpoint can make it again."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from ncttt.base.errors import InputError, nearest
from ncttt.nets.libraries import LIBRARIES, build_from_library
from ncttt.nets.preactivation import ResNet26GN
from ncttt.nets.resnet import BasicBlock, Block, Bottleneck, ResNet, ResNet20
from ncttt.nets.resnet9 import ResNet9
from ncttt.nets.transformer import ViT


def resnet18(num_classes: int = 10, image_size: int = 32) -> ResNet:
    """ResNet-18; `image_size` up to 64 gets the small stem (3x3, no pooling), larger the ImageNet one."""
    return _make("resnet18", BasicBlock, (2, 2, 2, 2), num_classes, image_size)


def resnet26(num_classes: int = 10, image_size: int = 32) -> ResNet:
    """ResNet-26, of bottleneck blocks."""
    return _make("resnet26", Bottleneck, (2, 2, 2, 2), num_classes, image_size)


def resnet34(num_classes: int = 10, image_size: int = 32) -> ResNet:
    """ResNet-34."""
    return _make("resnet34", BasicBlock, (3, 4, 6, 3), num_classes, image_size)


def resnet50(num_classes: int = 10, image_size: int = 32) -> ResNet:
    """ResNet-50, the paper's network."""
    return _make("resnet50", Bottleneck, (3, 4, 6, 3), num_classes, image_size)


def resnet20(num_classes: int = 10) -> ResNet20:
    """ResNet-20 for 32-pixel images, of 0.27 million parameters."""
    return ResNet20(num_classes)


def resnet26gn(num_classes: int = 10) -> ResNet26GN:
    """ResNet-26 with GroupNorm for 32-pixel images, of 0.37 million parameters: the CIFAR network of TTT and MEMO."""
    return ResNet26GN(num_classes)


def small(num_classes: int = 10, width: int = 24, growth: Sequence[int] = (1, 2, 4, 8)) -> ResNet9:
    """The network for two cores: ResNet-9 for images of 8 pixels and more, 0.93 million parameters by default.

    Its four stages have `width` times `growth` channels.
    """
    if len(growth) != 4 or min(width, *growth) < 1:
        raise InputError(f"small needs a width and four multiples of it, all at least 1; found {width} and {growth}")
    net = ResNet9(num_classes, width, growth)
    net.architecture = {"name": "small", "num_classes": num_classes, "width": width, "growth": list(growth)}
    return net


def vit(
    num_classes: int = 10, image_size: int = 32, patch_size: int = 4, width: int = 64, depth: int = 6, heads: int = 2
) -> ViT:
    """A vision transformer with a convolutional stem, of 0.24 million parameters by default.

    Images of `image_size` pixels become tokens of `width` channels, one for each patch of `patch_size` pixels, which is
    a power of two.
    """
    settings = {"image_size": image_size, "patch_size": patch_size, "width": width, "depth": depth, "heads": heads}
    if min(settings.values()) < 1 or patch_size & (patch_size - 1):
        raise InputError(f"vit needs sizes of at least 1 and a patch_size that is a power of two; found {settings}")
    if image_size % patch_size or width % heads or width % patch_size:
        raise InputError(
            f"vit needs an image_size that is a multiple of patch_size, and a width that is one of heads and of "
            f"patch_size; found {settings}"
        )
    net = ViT(num_classes, image_size, patch_size, width, depth, heads)
    net.architecture = {"name": "vit", "num_classes": num_classes, **settings}
    return net


# `ncttt info` reads these without torch.
NAMES = ("resnet18", "resnet20", "resnet26", "resnet26gn", "resnet34", "resnet50", "small", "vit")
MODELS: dict[str, Callable[..., nn.Module]] = {name: globals()[name] for name in NAMES}


def build(name: str, **settings: Any) -> nn.Module:
    """The network of that name, one of ours or of a library, as in `timm:resnet18`; with random weights.

    A library is `timm`, `torchvision` or `hf` (Hugging Face transformers). `pretrained=True` takes its weights, which
    may download them.

    >>> build("small", num_classes=7).fc.out_features
    7
    """
    if name.partition(":")[0] in LIBRARIES and ":" in name:
        return build_from_library(name, settings)
    if name not in MODELS:
        raise InputError(f"no network {name!r}{nearest(name, [*MODELS, *(f'{library}:...' for library in LIBRARIES)])}")
    known = inspect.signature(MODELS[name]).parameters
    for setting in settings.keys() - known.keys():
        raise InputError(f"network {name!r} has no setting {setting!r}{nearest(setting, known)}")
    return MODELS[name](**settings)


def rebuild(architecture: Mapping[str, Any]) -> nn.Module:
    """The network that a checkpoint describes, with random weights.

    Descriptions come from anybody: none of them fetches weights or names a folder or a repository.
    """
    name = architecture.get("name") if isinstance(architecture, Mapping) else None
    if not isinstance(name, str) or "/" in name or "\\" in name or architecture.get("pretrained"):
        raise InputError(f"expected the name and settings of a network; found {architecture!r:.80}")
    return build(**architecture)


def _make(name: str, block: Block, depths: Sequence[int], num_classes: int, image_size: int) -> ResNet:
    net = ResNet(block, depths, num_classes, image_size)
    net.architecture = {"name": name, "num_classes": num_classes, "image_size": image_size}
    return net
