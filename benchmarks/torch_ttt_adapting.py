"""The engines of torch-ttt at work: each made as its documentation says, with the settings of our method of its name.

All of them take steps by Adam, the only optimizer that they know. They copy themselves for every batch, and predict
by another forward after the last step. What else differs from what their names say was found by running them (0.0.2):

- TENT and EATA use the source statistics in evaluation mode, which their documentation asks for; the network is put
  back into training mode here, so that they use the batch's.
- EATA's `compute_fishers` raises a TypeError; the Fisher matrix is given to it here, ours.
- DeYO's weights have a gradient, which those of the paper do not.
- MEMO raises a TypeError on a network with BatchNorm2d, because its function for these layers is not bound to them; it
  is here. The batch's part of the statistics has no gradient, which ours has. Its own augmentations need torchvision;
  it gets our AugMix.
- ActMAD reads a layer's output after the forward, so after an in-place ReLU has changed it.
- MEMO and ActMAD print in every step, which is hidden here.
- TTT++ reads a linear layer, and its own augmentations need torchvision; with ours both sides make the same views.
"""

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from math import log
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch_ttt_engines import engine_class

import ncttt
from ncttt.methods.eata import FisherMatrix
from ncttt.methods.memo.augmix import augmix
from ncttt.methods.ttt_plus.views import Views

# What our method takes to do the same work: the peer's optimizer, its last forward, and images that all count, so that
# the work does not depend on what they show.
AS_PEER: dict[str, dict[str, Any]] = {
    "ttt": {"norm": "source"},
    "eata": {"returns": "after", "margin": 2.0, "redundancy": 2.0},
    "deyo": {"returns": "after", "optimizer": "adam", "margin": 2.0, "least_drop": -1.0},
    "memo": {"optimizer": "adam"},
    "actmad": {"optimizer": "adam"},
}
# What an engine raises when it is used as documented, and what stands in for it here.
MENDED = {
    "eata": "compute_fishers raises a TypeError; it gets our Fisher matrix",
    "memo": "a forward through BatchNorm2d raises a TypeError; its function is bound to the layers",
}


@dataclass(frozen=True)
class Work:
    """What an engine is made for: a network in PyTorch's usual layout, our model and method, normalised images."""

    net: nn.Module
    model: ncttt.Branched
    method: Any
    images: Tensor
    head: nn.Module | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Steps and learning rate, as the engines take them."""
        return {"optimization_parameters": {"lr": self.method.lr, "num_steps": self.method.steps}}


def adapting(name: str, work: Work) -> Callable[[Tensor], Any]:
    """The engine of that name, which adapts to a batch of normalised images and forgets it afterwards."""
    if name in MENDED:
        print(f"torch-ttt's {name} is mended: {MENDED[name]}", file=sys.stderr)
    with redirect_stdout(io.StringIO()):
        engine = ENGINES[name](engine_class(name), work)
    return hushed(engine) if name in ("memo", "actmad") else engine


def hushed(call: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """The same call without what it prints."""

    def quiet(images: Tensor) -> Any:
        with redirect_stdout(io.StringIO()):
            return call(images)

    return quiet


def tent(kind: Any, work: Work) -> Any:
    """TENT, with the batch's statistics."""
    engine = kind(work.net, **work.options).eval()
    engine.model.train()
    return engine


def ttt(kind: Any, work: Work) -> Any:
    """TTT with the given rotation head; without one the engine makes its own, which is shallow."""
    engine = kind(work.net, work.model.layers[-1], work.head, **work.options)
    engine(work.images)  # in training mode, which builds a head where none was given
    return engine.eval()


def ttt_pp(kind: Any, work: Work) -> Any:
    """TTT++ on the last linear layer."""
    linear = [part for part, module in work.net.named_modules() if isinstance(module, nn.Linear)][-1]
    engine = kind(work.net, linear, contrastive_transform=Views(), **work.options)
    engine.compute_statistics([(work.images,)])
    return engine.eval()


def eata(kind: Any, work: Work) -> Any:
    """EATA with our Fisher matrix and thresholds, and the batch's statistics."""
    moved, branch = work.method.parameters(work.model), work.model.branch
    assert isinstance(branch, FisherMatrix)
    pieces = branch.diagonal.split([parameter.numel() for parameter in moved.values()])
    fishers = {name: (piece, moved[name].detach().clone()) for name, piece in zip(moved, pieces, strict=True)}
    margins = {"e_margin": work.method.margin * _highest_entropy(work), "d_margin": work.method.redundancy}
    engine = kind(work.net, **margins, fisher_alpha=work.method.alpha, fishers=fishers, **work.options).eval()
    engine.model.train()
    return engine


def deyo(kind: Any, work: Work) -> Any:
    """DeYO with our thresholds; it takes the source statistics away, so that evaluation mode has the batch's."""
    method, highest = work.method, _highest_entropy(work)
    margins = {"e_margin": method.margin * highest, "ent_norm": method.weight_margin * highest}
    return kind(work.net, plpd_thresh=method.least_drop, patch_len=method.patches, **margins, **work.options).eval()


def memo(kind: Any, work: Work) -> Any:
    """MEMO with our augmentations, at as many views, and its function for BatchNorm bound to the layers."""
    engine = kind(work.net, augmentations=augmix, n_augmentations=work.method.views, **work.options).eval()
    for layer in engine.model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.forward = MethodType(layer.forward, layer)
    return engine


def actmad(kind: Any, work: Work) -> Any:
    """ActMAD on every normalisation layer."""
    layers = [name for name, module in work.net.named_modules() if isinstance(module, nn.BatchNorm2d)]
    engine = kind(work.net, layers, **work.options)
    engine.compute_statistics([(work.images,)])
    return engine.eval()


ENGINES = {kind.__name__: kind for kind in (tent, ttt, ttt_pp, eata, deyo, memo, actmad)}


@torch.no_grad()
def _highest_entropy(work: Work) -> float:
    return log(work.net(work.images[:2]).shape[1])
