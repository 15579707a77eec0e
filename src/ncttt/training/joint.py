"""The loss of joint training as one module, the optimizers that lower it, and the model's modes meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.base.optimizers import make_optimizer
from ncttt.model.branched import Branched
from ncttt.model.modes import evaluating
from ncttt.training.recipe import Recipe


class JointLoss(nn.Module):
    """Cross-entropy plus the weighted auxiliary loss, from one pass through the encoder.

    One module whose forward returns the loss is what DistributedDataParallel can wrap: it takes no notice of the hooks
    and of the several forwards inside.
    """

    def __init__(self, model: Branched, recipe: Recipe):
        super().__init__()
        self.model = model
        self.only_branch = branch_only(model, recipe)
        self.label_smoothing = recipe.label_smoothing
        own = model.method.auxiliary_weight
        self.weight = own if recipe.auxiliary_weight is None else recipe.auxiliary_weight

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and beside it, without gradient: cross-entropy, auxiliary loss and accuracy."""
        with torch.set_grad_enabled(not self.only_branch and torch.is_grad_enabled()):
            logits, features = self.model.forward_with_features(images)
            cross_entropy = F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing)
        auxiliary = self.model.method.training_loss(self.model, images, features, logits)
        if auxiliary is None:
            auxiliary = torch.zeros_like(cross_entropy)
        loss = auxiliary if self.only_branch else cross_entropy + self.weight * auxiliary
        accuracy = (logits.argmax(1) == labels).float().mean()
        return loss, torch.stack([cross_entropy.float(), auxiliary.float(), accuracy]).detach()


def branch_only(model: Branched, recipe: Recipe) -> bool:
    """Whether the classifier is frozen: as the recipe says, else as the method needs it."""
    only = recipe.branch == "only" if recipe.branch else model.method.trains == "branch"
    if only and model.branch is None:
        raise InputError(f"branch='only' trains the branch alone, but {type(model.method).__name__} has none")
    return only


def make_optimizers(model: Branched, recipe: Recipe) -> list[tuple[torch.optim.Optimizer, float]]:
    """The optimizer of the classifier, unless it is frozen, and that of the branch, with their highest rates."""
    parts = []
    if not branch_only(model, recipe):
        parts.append((model.classifier, recipe.optimizer, recipe.lr, recipe.weight_decay))
    if model.branch is not None and any(True for _ in model.branch.parameters()):
        parts.append((model.branch, recipe.branch_optimizer, recipe.branch_lr, recipe.branch_weight_decay))
    made = []
    for module, name, lr, weight_decay in parts:
        parameters = [p for p in module.parameters() if p.requires_grad]
        nesterov = recipe.nesterov and recipe.momentum > 0
        more = {"momentum": recipe.momentum, "nesterov": nesterov} if name == "sgd" else {}
        if parameters:
            made.append((make_optimizer(name, parameters, lr, weight_decay=weight_decay, **more), lr))
    return made


@contextmanager
def training_mode(model: Branched, only_branch: bool) -> Iterator[None]:
    """Training mode inside the `with` block, evaluation mode after it; a frozen classifier stays in evaluation."""
    wanted = {parameter: parameter.requires_grad for parameter in model.classifier.parameters()}
    try:
        model.train()
        if not only_branch:
            yield
            return
        for parameter in wanted:
            parameter.requires_grad_(False)
        with evaluating(model.classifier):
            yield
    finally:
        for parameter, requires_grad in wanted.items():
            parameter.requires_grad_(requires_grad)
        model.eval()


@contextmanager
def compiled(model: Branched) -> Iterator[None]:
    """Let the classifier's parts run through torch.compile inside the `with` block.

    The compiler would keep the hooks of its first call, and a tap's hooks live for one call. So what is compiled is
    the forward of every part that has no tapped layer inside it; hooks run between the parts as ever.
    """
    parts = list(_parts(model.classifier, model.layers))
    for part in parts:
        part.forward = torch.compile(part.forward)
    try:
        yield
    finally:
        for part in parts:
            del part.forward


def _parts(module: nn.Module, layers: tuple[str, ...], prefix: str = "") -> Iterator[nn.Module]:
    for name, child in module.named_children():
        path = f"{prefix}{name}"
        if any(layer.startswith(f"{path}.") for layer in layers):
            yield from _parts(child, layers, f"{path}.")
        elif any(True for _ in child.parameters()):
            yield child
