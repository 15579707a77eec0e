"""The engines of the package torch-ttt, one at a time and without torchvision.

Its registry imports every engine as soon as one is asked for, some of which need torchvision or einops. While an engine
is imported here, a registry that imports nothing stands in, and for torchvision a module with the one function that is
called at test time: quarter turns, by `torch.rot90`, which is cheaper than the resampling that it replaces.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from ncttt.methods.ttt_plus.views import Views

NAMES = {
    "tent": "TentEngine",
    "ttt": "TTTEngine",
    "ttt_pp": "TTTPPEngine",
    "eata": "EataEngine",
    "deyo": "DeYOEngine",
    "memo": "MemoEngine",
    "actmad": "ActMADEngine",
}


def engine_class(name: str) -> Any:
    """The engine of that name; an ImportError if torch-ttt is not installed."""
    with patch.dict(sys.modules, _stand_ins()):
        return getattr(importlib.import_module(f"torch_ttt.engine.{name}_engine"), NAMES[name])


def adapting(
    name: str, net: nn.Module, layer: str, images: Tensor, steps: int, lr: float, head: nn.Module | None = None
) -> Callable[[Tensor], Any]:
    """An engine that adapts a network to a batch, as its documentation says, and forgets afterwards.

    `head` is TTT's rotation head; without one the engine makes its own, which is shallow.
    """
    options = {"optimization_parameters": {"lr": lr, "num_steps": steps}}
    kind = engine_class(name)
    if name == "tent":
        engine = kind(net, **options).eval()
        engine.model.train()  # it does nothing about the source statistics that evaluation mode brings back
        return engine
    if name == "ttt":
        engine = kind(net, layer, head, **options)
        engine(images)  # in training mode, which builds a head where none was given
        return engine.eval()
    # Its own augmentations need torchvision; with ours both sides make the same views. It reads a linear layer.
    linear = [part for part, module in net.named_modules() if isinstance(module, nn.Linear)][-1]
    engine = kind(net, linear, contrastive_transform=Views(), **options)
    engine.compute_statistics([(images,)])
    return engine.eval()


def _stand_ins() -> dict[str, ModuleType]:
    registry = ModuleType("torch_ttt.engine_registry")
    registry.EngineRegistry = SimpleNamespace(register=lambda name: lambda engine: engine)  # type: ignore[attr-defined]
    functional = ModuleType("torchvision.transforms.functional")
    functional.rotate = lambda images, angle: torch.rot90(images, angle // 90, (-2, -1))  # type: ignore[attr-defined]
    transforms = ModuleType("torchvision.transforms")
    transforms.functional = functional  # type: ignore[attr-defined]
    torchvision = ModuleType("torchvision")
    torchvision.transforms = transforms  # type: ignore[attr-defined]
    return {part.__name__: part for part in (registry, torchvision, transforms, functional)}
