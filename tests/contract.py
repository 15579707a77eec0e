"""The contract of a method, as checks that fail with an AssertionError.

`test_contract.py` runs them over METHODS and architectures; `test_faults.py` plants faults and expects them to fail.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import ncttt
from architectures import CLASSES, attached, images
from ncttt.methods import Objective
from ncttt.model.norm import statistics


@dataclass(frozen=True, kw_only=True)
class RandomToy(ncttt.Method):
    """A method that draws random numbers, moves a buffer and learns: what the real ones do between them."""

    name: ClassVar[str] = "toy"
    has_branch: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    steps: int = 2
    lr: float = 1e-3

    def build_branch(self, model: ncttt.Branched, features: Any, logits: Tensor) -> nn.Module:
        branch = nn.Module()
        branch.register_buffer("seen", torch.zeros(1))
        return branch

    def parameters(self, model: ncttt.Branched) -> dict[str, nn.Parameter]:
        return model.encoder_parameters()

    def buffers(self, model: ncttt.Branched) -> dict[str, Tensor]:
        return dict(model.branch.named_buffers())

    def adaptation_loss(self, model: ncttt.Branched, images: Tensor) -> Objective:
        features = model.features(images)
        model.branch.seen += len(images)
        return Objective(((1 + 0.1 * torch.rand_like(features)) * features).square().mean())

    def predict(self, model: ncttt.Branched, images: Tensor) -> Tensor:
        return model(images) + 1e-3 * model.branch.seen


class Case:
    """A method on an architecture, with steps and a rate at which something visibly happens."""

    def __init__(self, architecture: str, method: ncttt.Method, **adapter: Any):
        self.method = method
        self.model = attached(architecture, method)
        self.model.calibrate([images(8, seed=9)])
        self.settings = {"steps": 3, "lr": 1e-3, **adapter} if method.learns else adapter

    def adapter(self, **settings: Any) -> ncttt.Adapter:
        return ncttt.Adapter(self.model, **{**self.settings, **settings})


def check_finite_logits(case: Case) -> None:
    adapter = case.adapter()
    for count in (6, 1, 5):
        logits = adapter(images(count))
        assert logits.shape == (count, CLASSES)
        assert logits.isfinite().all()
        assert not logits.requires_grad


def check_zero_steps_is_predict(case: Case) -> None:
    adapter = case.adapter()
    batch = images(6)
    found = case.adapter(steps=0)(batch)
    with torch.no_grad(), statistics(adapter.model.batch_norms(), adapter.norm[1]):
        expected = case.method.predict(adapter.model, batch)
    assert torch.equal(found, expected)


def check_user_model_untouched(case: Case) -> None:
    for mode in (True, False):
        case.model.train(mode)
        before = fingerprint(case.model)
        adapter = case.adapter(protocol="online")
        adapter(images(6))
        adapter.predict_at([0, 1], images(4))
        assert_same(before, fingerprint(case.model))


def check_no_hooks_left(case: Case) -> None:
    adapter = case.adapter()
    adapter(images(4))
    for bad in (torch.full((2, 3, 16, 16), torch.nan), torch.rand(2, 5, 16, 16)):
        try:
            adapter(bad)
        except (ncttt.InputError, RuntimeError):
            continue
        raise AssertionError("a bad batch was accepted")
    for module in (*case.model.modules(), *adapter.model.modules()):
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
        assert "forward" not in vars(module)


def check_reset_is_exact(case: Case) -> None:
    adapter = case.adapter(protocol="online")
    before = fingerprint(adapter.model)
    first = adapter(images(6, seed=1))
    adapter(images(6, seed=2))
    adapter.reset()
    assert_same(before, fingerprint(adapter.model))
    assert torch.equal(adapter(images(6, seed=1)), first)


def check_episodic_order_is_irrelevant(case: Case) -> None:
    adapter = case.adapter()
    first, second = images(6, seed=1), images(6, seed=2)
    forwards = adapter(first), adapter(second)
    backwards = adapter(second), adapter(first)
    assert torch.equal(forwards[0], backwards[1])
    assert torch.equal(forwards[1], backwards[0])


def check_only_declared_tensors_move(case: Case) -> None:
    adapter = case.adapter(protocol="online")
    before = copy.deepcopy(adapter.model.state_dict())
    for seed in range(2):
        adapter(images(6, seed))
    moved = {name for name, tensor in adapter.model.state_dict().items() if not torch.equal(tensor, before[name])}
    declared = {f"classifier.{name}" for name in case.method.parameters(adapter.model)}
    declared |= {f"branch.{name}" for name in case.method.buffers(adapter.model)}
    assert moved <= declared, moved - declared
    if case.method.learns:
        assert moved, "nothing moved"
        branch = {id(p) for p in adapter.model.branch.parameters()} if adapter.model.branch else set()
        assert not branch & {id(p) for p in case.method.parameters(adapter.model).values()}, "the branch may not learn"


def check_loss_falls_on_its_own_batch(case: Case) -> None:
    if case.method.learns:
        adapter = case.adapter(steps=12)
        adapter(images(6))
        assert adapter.trace.steps == 12
        assert adapter.trace.losses[-1] < adapter.trace.losses[0]


def check_works_without_grad(case: Case) -> None:
    expected = case.adapter()(images(6))
    with torch.no_grad():
        assert torch.equal(case.adapter()(images(6)), expected)
    with torch.inference_mode():
        inside = case.adapter()(images(6).clone())
        made_inside = images(6).clone()
    assert torch.equal(inside, expected)
    assert torch.equal(case.adapter()(made_inside), expected)


def check_seeded_runs_are_equal(case: Case) -> None:
    results = []
    for somewhere in (1, 2):
        torch.manual_seed(somewhere)
        state = torch.get_rng_state()
        results.append(case.adapter(seed=3)(images(6)))
        assert torch.equal(torch.get_rng_state(), state), "the global random state was used"
    assert torch.equal(*results)
    once, again = case.adapter(protocol="online"), case.adapter(protocol="online")
    assert all(torch.equal(once(images(6, seed)), again(images(6, seed))) for seed in range(3))


def check_predict_at_equals_separate_runs(case: Case) -> None:
    counts = [0, 1, 3, 5]
    together = case.adapter().predict_at(counts, images(6))
    for count, logits in zip(counts, together, strict=True):
        assert torch.equal(logits, case.adapter(steps=count)(images(6)))


def check_a_batch_like_the_source_is_left_to_it(case: Case) -> None:
    adapter = case.adapter(stop="source", protocol="online")
    with torch.no_grad():
        expected = adapter.model(images(6))
    never(adapter.model)
    adapter(images(6, seed=1))
    moved = fingerprint(adapter.model)
    always(adapter.model)
    found = adapter.predict_at([0, 3], images(6))
    assert adapter.trace.steps == 0
    assert adapter.trace.stopped == "left to source"
    assert torch.equal(found, torch.stack([expected, expected]))
    never(adapter.model)
    assert_same(moved, fingerprint(adapter.model))


def check_the_gate_does_not_change_other_batches(case: Case) -> None:
    for protocol in ("episodic", "online"):
        gated, free = case.adapter(stop="source", protocol=protocol), case.adapter(protocol=protocol)
        never(gated.model)
        assert all(torch.equal(gated(images(6, seed)), free(images(6, seed))) for seed in range(2))
        assert 0 < gated.trace.confidence < 1


def always(model: ncttt.Branched) -> None:
    """Let any batch look like the source's."""
    model.source_certainty.copy_(torch.tensor([[0.0, 0.0], [-1e9, 0.0]]))


def never(model: ncttt.Branched) -> None:
    """Let no batch look like the source's, by certainty or by score."""
    for name, buffer in model.named_buffers():
        if name.endswith(("source_certainty", "source_score")):
            buffer.copy_(torch.tensor([2.0, 0.0]))


CHECKS: list[Callable[[Case], None]] = [value for name, value in list(globals().items()) if name.startswith("check_")]


def fingerprint(module: nn.Module) -> dict[str, Any]:
    """Everything about a module that a user could notice: tensors, modes, gradients wanted, hooks."""
    facts: dict[str, Any] = {f"tensor {k}": v.clone() for k, v in module.state_dict().items()}
    facts |= {f"grad {k}": (p.requires_grad, p.grad is None) for k, p in module.named_parameters()}
    for name, part in module.named_modules():
        facts[f"mode {name}"] = (part.training, getattr(part, "track_running_stats", None))
        facts[f"hooks {name}"] = (len(part._forward_hooks), len(part._forward_pre_hooks), sorted(vars(part)))
    return facts


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert before.keys() == after.keys()
    for name, value in before.items():
        same = torch.equal(value, after[name]) if isinstance(value, Tensor) else value == after[name]
        assert same, name
