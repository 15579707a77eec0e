"""Small classifiers of different kinds, for 16-pixel images of five classes, with random weights."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ncttt import models
from ncttt.methods.base import Method
from ncttt.model.branched import Branched, attach

CLASSES = 5


def images(count: int, seed: int = 0, size: int = 16) -> Tensor:
    """Images `(count, 3, size, size)` of noise in [0, 1]."""
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(seed))


def resnet() -> nn.Module:
    """A residual network; tapped at `layer2`."""
    return models.small(num_classes=CLASSES, width=4)


def vgg() -> nn.Module:
    """A sequence of layers without names."""

    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(*block(3, 8), *block(8, 12), *block(12, 16), nn.Flatten(), nn.Linear(64, CLASSES))


class Branching(nn.Module):
    """Control flow that depends on the input, a layer used twice, a layer never used, and logits in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(8, CLASSES)  # registered first, runs last
        self.unused = nn.Conv2d(3, 8, 1)
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Tanh())

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.body(self.stem(x).relu())
        if x.shape[0] > 0 and x.mean() < 1e6:
            x = self.body(x) + x
        return {"logits": self.last(x.mean((2, 3))), "features": x}


class ViT(nn.Module):
    """A vision transformer with two blocks on 4-pixel patches; returns a tuple."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.position = nn.Parameter(0.02 * torch.randn(1, 16, width))
        block = {"d_model": width, "nhead": 2, "dim_feedforward": 32, "dropout": 0.1, "batch_first": True}
        self.block1, self.block2 = (nn.TransformerEncoderLayer(**block, norm_first=True) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.position
        tokens = self.norm(self.block2(self.block1(tokens)))
        return self.head(tokens.mean(1)), tokens


CLASSIFIERS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "resnet": (resnet, "layer2"),
    "vgg": (vgg, "7"),
    "branching": (Branching, "body"),
    "vit": (ViT, "block1"),
}


def attached(name: str, method: Method, seed: int = 0, layer: str | None = None) -> Branched:
    """A model with random weights and BatchNorm statistics that belong to some other data."""
    torch.manual_seed(seed)
    make, tap = CLASSIFIERS[name]
    net = make()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    model = attach(net, layer or tap, method, images(2), mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2))
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.data.add_(0.01 * torch.randn_like(parameter))
    return model.eval()
