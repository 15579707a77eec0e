"""What `methods.py` times: every method on a network, the two ways to call it, and the peer's engine of its name."""

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch_ttt_adapting import AS_PEER, Work, adapting

import ncttt
from ncttt.methods.lame import AFFINITIES

ZOO = {
    "nc_ttt": "cifar10-small-ncttt",
    "ttt": "cifar10-small-ttt",
    "ttt_plus": "cifar10-small-ttt-plus",
    "clust3": "cifar10-small-clust3",
    "ttt_flow": "cifar10-small-ttt-flow",
    "ttt_mae": "cifar10-vit-ttt-mae",
}
VARIANTS = {
    "lame": [{"affinity": kind} for kind in AFFINITIES],
    "tent": [{}, {"returns": "before"}],
    "ttt": [{}, {"head": "pooled"}],
    "memo": [{"views": 4}],  # of 32, which are for single images: a hundred would need them all in memory together
}
PEERS = {
    "tent": "tent",
    "ttt": "ttt",
    "ttt pooled": "ttt",
    "ttt_plus": "ttt_pp",
    "eata": "eata",
    "deyo": "deyo",
    "memo 4": "memo",
    "actmad": "actmad",
}
EQUAL = "Adapter, as the peer"
SAME_HEAD, OWN_HEAD = "torch-ttt", "torch-ttt, its own head"
LAYER = "layer2"
STEPS = 4  # at most, because the twenty of some methods, and of their peers, would take an hour


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
        " ".join([name, *map(str, settings.values())]): kind(**settings)
        for name, kind in ncttt.METHODS.items()
        for settings in VARIANTS.get(name, [{}])
    }


def timed_ways(label: str, data: str, first: Tensor, steps: int = STEPS) -> Iterator[Timed]:
    """The ways of one method, in so many steps at most.

    Those that the network or the peer cannot do are reported and left out.
    """
    method = all_methods()[label]
    try:
        model = model_for(method, data)
    except ncttt.InputError as error:
        print(f"{label} is left out: {error}", file=sys.stderr)
        return
    method = model.method if method.has_branch else method
    method = replace(method, steps=min(method.steps, steps))
    model.calibrate([first])
    # What learns from past images learns nothing where they are forgotten.
    adapter = ncttt.Adapter(model, method, protocol="online" if method.learns_from == "memory" else "episodic")
    counts = sorted({0, min(1, method.steps), method.steps})
    yield Timed(label, "Adapter", adapter)
    yield Timed(label, "predict_at", lambda images: adapter.predict_at(counts, images))
    peer = PEERS.get(label)
    if peer is None or find_spec("torch_ttt") is None:
        return
    method = replace(method, **AS_PEER.get(peer, {}))
    yield Timed(label, EQUAL, ncttt.Adapter(model, method))
    normalised = lambda images: ((images - model.mean) / model.std).contiguous()  # noqa: E731
    # TTT's engine takes a head: so it can be given the same work, or its own.
    for way, head in {SAME_HEAD: model.branch, OWN_HEAD: None}.items() if peer == "ttt" else [(SAME_HEAD, None)]:
        try:
            own_head = None if head is None else as_it_comes(head)
            work = Work(as_it_comes(model.classifier), model, method, normalised(first), own_head)
            engine = adapting(peer, work)
            engine(normalised(first))
        except Exception as error:  # whatever the peer raises is what we report
            print(f"torch-ttt's {peer} is left out: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        yield Timed(label, way, engine, normalised)


def as_it_comes(part: nn.Module) -> nn.Module:
    """A copy in PyTorch's usual layout, in which the peer's users have their networks; ours changes it by itself."""
    return copy.deepcopy(part).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]


def model_for(method: ncttt.Method, data: str) -> ncttt.Branched:
    """The zoo's model for the set, with a branch of the method's own form, which is trained where the zoo's fits."""
    torch.manual_seed(0)
    trained = ZOO.get(method.name, "cifar10-small-source") if data == "cifar10" else "digits-small-ncttt"
    model = ncttt.load(trained)
    if not method.has_branch or _same_branch(model.method, method):
        return model
    if not method.needs_training():
        return ncttt.calibrated(model, method, [torch.rand(64, 3, 32, 32)])
    normalisation = {name: getattr(model, name).flatten().tolist() for name in ("mean", "std")}
    return ncttt.attach(model.classifier, LAYER, method, torch.rand(2, 3, 32, 32), **normalisation).eval()


def _same_branch(one: ncttt.Method, other: ncttt.Method) -> bool:
    return type(one) is type(other) and all(getattr(one, key) == getattr(other, key) for key in one.branch_settings)
