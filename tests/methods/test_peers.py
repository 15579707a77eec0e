"""Against the package torch-ttt, where it is right; skipped if it is not installed."""

import copy
import importlib.util
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ncttt
from ncttt.methods.eata import FisherMatrix
from ncttt.methods.ttt import TTT
from ncttt.testing.cases import CLASSES, images, resnet

pytest.importorskip("torch_ttt")


def peer_engine(name: str) -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "torch_ttt_engines.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.engine_class(name)


@pytest.mark.parametrize("steps", [1, 3])
def test_tent_moves_the_same_weights_to_the_same_place(steps):
    torch.manual_seed(0)
    net = resnet().eval()
    engine = peer_engine("tent")(
        copy.deepcopy(net), {"lr": 1e-3, "num_steps": steps, "copy_model": False, "optimizer_name": "adam"}
    ).eval()
    engine.model.train()  # in evaluation mode it would use the source statistics
    theirs, _ = engine(images(8))
    adapter = ncttt.Adapter(net, ncttt.Tent(steps=steps), protocol="online")
    ours = adapter(images(8))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert_same_parameters(adapter, engine, net)


def test_ttt_has_the_same_loss_and_moves_the_same_weights_to_the_same_place():
    """With our head in the peer's engine, and quarter turns by `torch.rot90` in both."""
    torch.manual_seed(0)
    net = resnet().eval()
    model = ncttt.attach(net, "layer2", TTT(), images(2)).eval()
    options = {"lr": 1e-3, "num_steps": 1, "copy_model": False, "optimizer_name": "adam"}
    engine = peer_engine("ttt")(copy.deepcopy(net), "layer2", copy.deepcopy(model.branch), None, options).eval()
    theirs, loss = engine(images(8))
    adapter = ncttt.Adapter(model, norm="source", optimizer="adam", steps=1, lr=1e-3, protocol="online")
    ours = adapter(images(8))
    assert adapter.trace.losses[0] == pytest.approx(loss.item(), abs=1e-5)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    assert_same_parameters(adapter, engine, net)


@pytest.mark.parametrize("steps", [1, 3])
def test_eata_moves_the_same_weights_to_the_same_place(steps):
    """With the same Fisher matrix, and margins at which every image counts, because the peer's cosine has a sign."""
    torch.manual_seed(0)
    model = ncttt.calibrated(resnet().eval(), ncttt.EATA(alpha=50.0), [images(64, seed=3)])
    moved, branch = model.method.parameters(model), model.branch
    assert isinstance(branch, FisherMatrix)
    pieces = branch.diagonal.split([parameter.numel() for parameter in moved.values()])
    fishers = {name: (piece, moved[name].detach().clone()) for name, piece in zip(moved, pieces, strict=True)}
    margins = {"e_margin": 2 * math.log(CLASSES), "d_margin": 2.0, "fisher_alpha": 50.0, "fishers": fishers}
    options = {"lr": 1e-3, "num_steps": steps, "copy_model": False, "optimizer_name": "adam"}
    net = copy.deepcopy(model.classifier)
    engine = peer_engine("eata")(copy.deepcopy(net), options, **margins).eval()
    engine.model.train()  # in evaluation mode it would use the source statistics
    theirs, _ = engine(images(64))
    method = replace(model.method, steps=steps, margin=2.0, redundancy=2.0, returns="after")
    adapter = ncttt.Adapter(model, method, protocol="online")
    torch.testing.assert_close(adapter(images(64)), theirs, rtol=1e-4, atol=1e-4)
    assert_same_parameters(adapter, engine, net)


def test_actmad_has_the_same_loss_but_for_a_half():
    """On layers whose output nothing changes in place, because the peer reads it after the forward."""
    torch.manual_seed(0)
    net = resnet().eval()
    for part in net.modules():
        if isinstance(part, nn.ReLU):
            part.inplace = False
    layers = [name for name, part in net.named_modules() if isinstance(part, nn.BatchNorm2d)]
    engine = peer_engine("actmad")(copy.deepcopy(net), layers, {"num_steps": 1}).eval()
    engine.compute_statistics([(images(64, seed=3),)])
    _, loss = engine(images(64))
    adapter = ncttt.Adapter(ncttt.calibrated(net, ncttt.ActMAD(), [images(64, seed=3)]))
    adapter(images(64))
    assert adapter.trace.losses[0] == pytest.approx(loss.item() / 2, rel=1e-4)


def assert_same_parameters(adapter: ncttt.Adapter, engine: Any, source: nn.Module) -> None:
    """Equal weights, and just those that the method declares are no longer the source's."""
    ours = adapter.model.classifier.named_parameters()
    moved = set()
    for (name, mine), other, old in zip(ours, engine.model.parameters(), source.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-5, msg=name)
        moved |= set() if torch.equal(mine, old) else {name}
    assert moved == set(adapter.method.parameters(adapter.model))
