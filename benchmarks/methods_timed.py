"""What `methods.py` times: every method on a network, the two ways to call it, and the peer's engine of its name."""

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch_ttt_engines import adapting

import ncttt
from ncttt.methods.affinity import AFFINITIES

NETWORKS = {"digits": "small", "cifar10": "resnet20"}
VARIANTS = {
    "lame": [{"affinity": kind} for kind in AFFINITIES],
    "tent": [{}, {"returns": "before"}],
    "ttt": [{}, {"head": "pooled"}],
}
PEERS = {"tent": "tent", "ttt": "ttt", "ttt pooled": "ttt", "ttt_plus": "ttt_pp"}
SAME_HEAD, OWN_HEAD = "torch-ttt", "torch-ttt, its own head"
LAYER = "layer2"


@dataclass(frozen=True)
class Timed:
    """One way to adapt to a batch; `prepare` makes its input, outside the clock."""

    method: str
    name: str
    run: Callable[[Tensor], object]
    prepare: Callable[[Tensor], Tensor] = lambda images: images

    @property
    def label(self) -> str:
        """Method and way, as one word for the command line."""
        return f"{self.method}/{self.name}"


def all_methods() -> dict[str, ncttt.Method]:
    """Every method of METHODS with its defaults, some in several variants, by label."""
    return {
        " ".join([name, *settings.values()]): kind(**settings)
        for name, kind in ncttt.METHODS.items()
        for settings in VARIANTS.get(name, [{}])
    }


def timed_ways(label: str, data: str, checkpoints: Path | None, first: Tensor) -> Iterator[Timed]:
    """The ways of one method; those that the network or the peer cannot do are reported and left out."""
    method = all_methods()[label]
    try:
        model = model_for(method, data, checkpoints)
    except ncttt.InputError as error:
        print(f"{label} is left out: {error}", file=sys.stderr)
        return
    method = model.method if method.has_branch else method
    method.calibrate(model, [first])
    adapter = ncttt.Adapter(model, method)
    counts = sorted({0, min(1, method.steps), method.steps})
    yield Timed(label, "Adapter", adapter)
    yield Timed(label, "predict_at", lambda images: adapter.predict_at(counts, images))
    peer = PEERS.get(label)
    if peer is None or find_spec("torch_ttt") is None:
        return
    # TTT's engine takes a head, so there it can be given the same work to do, or be left to its own.
    for way, head in {SAME_HEAD: model.branch, OWN_HEAD: None}.items() if peer == "ttt" else [(SAME_HEAD, None)]:
        parts = copy.deepcopy((model.classifier, head))
        try:
            engine = adapting(peer, parts[0], model.layers[-1], first, method.steps, method.lr, parts[1])
            engine(first)
        except Exception as error:  # whatever the peer raises is what we report
            print(f"torch-ttt's {peer} is left out: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        yield Timed(label, way, engine, lambda images: (images - model.mean) / model.std)


def model_for(method: ncttt.Method, data: str, checkpoints: Path | None) -> ncttt.Branched:
    """The checkpoint of a method, or any for one without a branch; where there is none, an untrained network."""
    wanted = method.name if method.has_branch else "*"
    found = sorted(checkpoints.glob(f"{wanted}/model.json")) if checkpoints and data == "cifar10" else []
    if found:
        return ncttt.load(found[0].parent)
    torch.manual_seed(0)
    net = ncttt.models.build(NETWORKS[data], num_classes=10).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return ncttt.attach(net, LAYER, method, torch.rand(2, 3, 32, 32)).eval()
