"""The engines of the package torch-ttt, one at a time and without torchvision.

Its registry imports every engine as soon as one is asked for, some of which need torchvision or einops. While an engine
is imported here, a registry that imports nothing stands in, for torchvision a module with the one function that is
called at test time: quarter turns, by `torch.rot90`, which is cheaper than the resampling that it replaces; and for
einops the two rearrangements that cut images into patches and put them together, in PyTorch's own words.
"""

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

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


def _stand_ins() -> dict[str, ModuleType]:
    registry = ModuleType("torch_ttt.engine_registry")
    registry.EngineRegistry = SimpleNamespace(register=lambda name: lambda engine: engine)  # type: ignore[attr-defined]
    functional = ModuleType("torchvision.transforms.functional")
    functional.rotate = lambda images, angle: torch.rot90(images, angle // 90, (-2, -1))  # type: ignore[attr-defined]
    transforms = ModuleType("torchvision.transforms")
    transforms.functional = functional  # type: ignore[attr-defined]
    torchvision = ModuleType("torchvision")
    torchvision.transforms = transforms  # type: ignore[attr-defined]
    einops = ModuleType("einops")
    einops.rearrange = _rearranged  # type: ignore[attr-defined]
    return {part.__name__: part for part in (registry, torchvision, transforms, functional, einops)}


def _rearranged(images: Tensor, pattern: str, ph: int, pw: int) -> Tensor:
    """Images cut into `ph` x `pw` patches `(B, patches, C, h, w)`, or such patches put together."""
    if pattern.startswith("b c"):
        return images.unflatten(3, (pw, -1)).unflatten(2, (ph, -1)).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    return images.unflatten(1, (ph, pw)).permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
