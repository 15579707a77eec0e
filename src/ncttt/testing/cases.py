"""Cases of the contract: a method on a small classifier, and what of it a user could notice."""

from typing import Any

import torch
from torch import Tensor, nn

from ncttt.adapt.adapter import Adapter
from ncttt.methods.base import Method
from ncttt.model.branched import Branched
from ncttt.testing.classifiers import attached, images


class Case:
    """A method on a small classifier, with steps and a rate at which something visibly happens."""

    def __init__(self, classifier: str, method: Method, **adapter: Any):
        self.method = method
        self.model = attached(classifier, method)
        self.model.calibrate([images(8, seed=9)])
        self.settings = {"steps": 3, "lr": 1e-3, **adapter} if method.learns else adapter

    def adapter(self, **settings: Any) -> Adapter:
        """An adapter of the case, with some of its settings changed."""
        return Adapter(self.model, **{**self.settings, **settings})


def always(model: Branched) -> None:
    """Let any batch look like the source's."""
    model.source_certainty.copy_(torch.tensor([[0.0, 0.0], [-1e9, 0.0]]))


def never(model: Branched) -> None:
    """Let no batch look like the source's, by certainty or by score."""
    for name, buffer in model.named_buffers():
        if name.endswith(("source_certainty", "source_score")):
            buffer.copy_(torch.tensor([2.0, 0.0]))


def fingerprint(module: nn.Module) -> dict[str, Any]:
    """Everything about a module that a user could notice: tensors, modes, gradients wanted, hooks."""
    facts: dict[str, Any] = {f"tensor {k}": v.clone() for k, v in module.state_dict().items()}
    facts |= {f"grad {k}": (p.requires_grad, p.grad is None) for k, p in module.named_parameters()}
    for name, part in module.named_modules():
        facts[f"mode {name}"] = (part.training, getattr(part, "track_running_stats", None))
        facts[f"hooks {name}"] = (len(part._forward_hooks), len(part._forward_pre_hooks), sorted(vars(part)))
    return facts


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Fail unless two fingerprints are equal."""
    assert before.keys() == after.keys(), f"parts came or went: {sorted(before.keys() ^ after.keys())}"
    for name, value in before.items():
        same = torch.equal(value, after[name]) if isinstance(value, Tensor) else value == after[name]
        assert same, f"changed: {name}"
