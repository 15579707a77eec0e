"""Against the package torch-ttt, where it is right; skipped if it is not installed."""

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ncttt
from ncttt.methods.ttt import TTT
from ncttt.testing.cases import images, resnet

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


def assert_same_parameters(adapter: ncttt.Adapter, engine: Any, source: nn.Module) -> None:
    """Equal weights, and just those that the method declares are no longer the source's."""
    ours = adapter.model.classifier.named_parameters()
    moved = set()
    for (name, mine), other, old in zip(ours, engine.model.parameters(), source.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-5, msg=name)
        moved |= set() if torch.equal(mine, old) else {name}
    assert moved == set(adapter.method.parameters(adapter.model))
