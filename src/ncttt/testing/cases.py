"""What the contract is checked on: small classifiers of different kinds, and a method on each of them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ncttt import models
from ncttt.adapt.adapter import Adapter
from ncttt.methods.base import Method
from ncttt.model.branched import Branched, attach
from ncttt.model.norm import statistics
from ncttt.model.snapshot import named_tensors

CLASSES = 5


class Case:
    """A method on a small classifier, with steps and a rate at which something visibly happens.

    With `confident` the classifier is sure of different classes, as a trained one is: some methods learn from nothing
    else.
    """

    def __init__(self, classifier: str, method: Method, confident: bool = False, **adapter: Any):
        self.method = method
        self.model = attached(classifier, method)
        if confident:
            make_confident(self.model)
        self.model.calibrate([images(8, seed=9)])
        trusted(self.model)
        self.settings = {"steps": 3, "lr": 1e-3, **adapter} if method.learns else adapter

    def adapter(self, **settings: Any) -> Adapter:
        """An adapter of the case, with some of its settings changed."""
        return Adapter(self.model, **{**self.settings, **settings})


@torch.no_grad()
def make_confident(model: Branched, spread: float = 4.0) -> None:
    """Scale the last layer so that each class's logit has mean 0 and this spread over images of noise."""
    linear = [part for part in model.modules() if isinstance(part, nn.Linear) and part.out_features == CLASSES][-1]
    with statistics(model.batch_norms(), "batch" if model.batch_norms() else "source"):
        logits = model(images(64, seed=7))
    scale = spread / logits.std(0)
    linear.weight.mul_(scale[:, None])
    linear.bias.sub_(logits.mean(0)).mul_(scale)


def always(model: Branched) -> None:
    """Let any batch look like the source's."""
    model.source_certainty.copy_(torch.tensor([[0.0, 0.0], [-1e9, 0.0]]))


def never(model: Branched) -> None:
    """Let no batch look like the source's, by certainty or by score."""
    for name, buffer in model.named_buffers():
        if name.endswith(("source_certainty", "source_score")):
            buffer.copy_(torch.tensor([2.0, 0.0]))


def trusted(model: Branched) -> None:
    """Let it be unknown whether a branch can tell source images, because one with random weights cannot."""
    for name, buffer in model.named_buffers():
        if name.endswith("shuffled_score"):
            buffer.fill_(-1.0)


def fingerprint(module: nn.Module) -> dict[str, Any]:
    """Everything about a module that a user could notice: tensors, modes, gradients wanted, hooks."""
    facts: dict[str, Any] = {f"tensor {k}": v.clone() for k, v in module.state_dict().items()}
    facts |= {f"grad {k}": (p.requires_grad, p.grad is None) for k, p in module.named_parameters()}
    for name, part in module.named_modules():
        facts[f"mode {name}"] = (part.training, getattr(part, "track_running_stats", None))
        facts[f"hooks {name}"] = (len(part._forward_hooks), len(part._forward_pre_hooks), sorted(vars(part)))
    return facts


def remembered(memory: nn.Module) -> dict[str, str]:
    """All that a memory holds, as text by name: its tensors, and what else its modules have as attributes."""
    facts = {name: str(tensor.tolist()) for name, tensor in named_tensors(memory).items()}
    for prefix, part in memory.named_modules():
        facts |= {f"{prefix}.{name}": repr(value) for name, value in vars(part).items() if not name.startswith("_")}
    return facts


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Fail unless two fingerprints are equal."""
    assert before.keys() == after.keys(), f"parts came or went: {sorted(before.keys() ^ after.keys())}"
    for name, value in before.items():
        same = torch.equal(value, after[name]) if isinstance(value, Tensor) else value == after[name]
        assert same, f"changed: {name}"


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
