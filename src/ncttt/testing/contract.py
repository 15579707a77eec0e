"""The contract of a method as checks: each is a rule, told by its first line, and fails with an AssertionError."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ncttt.adapt.adapter import Adapter
from ncttt.adapt.small_batches import SmallBatchWarning
from ncttt.base.errors import InputError, nearest
from ncttt.methods.base import Method, Prediction
from ncttt.model.mirrors import mean_logits, mirror
from ncttt.model.norm import predicting, statistics
from ncttt.model.snapshot import named_tensors
from ncttt.testing.cases import (
    CLASSES,
    CLASSIFIERS,
    Case,
    always,
    assert_same,
    fingerprint,
    images,
    never,
    remembered,
)


def check_method(
    method: type[Method] | Method, classifiers: Iterable[str] = tuple(CLASSIFIERS), confident: bool = False
) -> None:
    """Raise an `AssertionError` that names the rule, unless the method keeps the contract on these small classifiers.

    A class is made with its default settings. `classifiers` are names in `CLASSIFIERS`: leave out what the method is
    not made for, such as `vit`, which has no BatchNorm. With `confident` they are sure of their classes, for a method
    that learns from certain images alone.

    >>> import ncttt
    >>> check_method(ncttt.PTBN, classifiers=["resnet"])
    """
    made = method() if isinstance(method, type) else method
    name = type(made).__name__
    if not isinstance(made, Method) or not isinstance(getattr(made, "name", None), str):
        raise AssertionError(f"{name} must be an ncttt.Method with a class variable `name`; found {made!r}")
    for classifier in classifiers:
        if classifier not in CLASSIFIERS:
            raise InputError(f"no classifier {classifier!r}{nearest(classifier, CLASSIFIERS)}")
        for check in CHECKS:
            _run(check, classifier, made, confident)


def _run(check: Callable[[Case], None], classifier: str, method: Method, confident: bool) -> None:
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*has no BatchNorm")
        warnings.simplefilter("ignore", SmallBatchWarning)  # the checks are quick because their batches are small
        try:
            check(Case(classifier, method, confident))
        except Exception as error:
            rule = (check.__doc__ or check.__name__).splitlines()[0]
            reason = f"{type(error).__name__}: {error}".removeprefix("AssertionError: ")
            raise AssertionError(f"{type(method).__name__} on {classifier} breaks a rule. {rule} {reason}") from error


def check_finite_logits(case: Case) -> None:
    """Logits are finite, a row for each image, without a gradient."""
    adapter = case.adapter()
    for count in (6, 1, 5):
        logits = adapter(images(count))
        assert logits.shape == (count, CLASSES), f"{count} images gave logits of shape {tuple(logits.shape)}"
        assert logits.isfinite().all(), "some are not finite"
        assert not logits.requires_grad, "they carry a gradient"


def check_zero_steps_is_predict(case: Case) -> None:
    """Zero steps give what `predict` gives."""
    adapter = case.adapter()
    batch = images(6)
    logits = case.adapter(steps=0)(batch)
    views = [batch, mirror(batch)] if case.method.looks_twice else [batch]
    with torch.no_grad(), statistics(adapter.model.batch_norms(), predicting(adapter.norm[1])):
        predictions = [case.method.predict(adapter.model, view) for view in views]
    each = [prediction.logits if isinstance(prediction, Prediction) else prediction for prediction in predictions]
    expected = mean_logits(*each) if case.method.looks_twice else each[0]
    assert torch.equal(logits, expected), "the logits differ"


def check_user_model_untouched(case: Case) -> None:
    """The model that was given is bit for bit as before: tensors, modes, gradients, hooks."""
    for mode in (True, False):
        case.model.train(mode)
        before = fingerprint(case.model)
        adapter = case.adapter(protocol="online")
        adapter(images(6))
        adapter.predict_at([0, 1], images(4))
        assert_same(before, fingerprint(case.model))


def check_no_hooks_left(case: Case) -> None:
    """No hook is left behind, not even by a batch that is refused."""
    adapter = case.adapter()
    adapter(images(4))
    for bad in (torch.full((2, 3, 16, 16), torch.nan), torch.rand(2, 5, 16, 16)):
        try:
            adapter(bad)
        except (InputError, RuntimeError):
            continue
        raise AssertionError("a bad batch was accepted")
    for module in (*case.model.modules(), *adapter.model.modules()):
        left = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        assert not left, f"found {left[0]} on a {type(module).__name__}"
        assert "forward" not in vars(module), f"the forward of a {type(module).__name__} was replaced"


def check_reset_is_exact(case: Case) -> None:
    """A reset brings everything back bit for bit, and the same batches then give the same logits."""
    adapter = case.adapter(protocol="online")
    before = fingerprint(adapter.model)
    first = adapter(images(6, seed=1))
    adapter(images(6, seed=2))
    adapter.reset()
    assert_same(before, fingerprint(adapter.model))
    assert torch.equal(adapter(images(6, seed=1)), first), "the logits differ"


def check_episodic_order_is_irrelevant(case: Case) -> None:
    """In the episodic protocol the order of batches does not matter."""
    adapter = case.adapter()
    first, second = images(6, seed=1), images(6, seed=2)
    forwards = adapter(first), adapter(second)
    backwards = adapter(second), adapter(first)
    assert torch.equal(forwards[0], backwards[1]), "a batch depends on the one before it"
    assert torch.equal(forwards[1], backwards[0]), "a batch depends on the one before it"


def check_only_declared_tensors_move(case: Case) -> None:
    """What `parameters` and `buffers` name and the memory move, nothing else, and of the branch no parameter."""
    adapter = case.adapter(protocol="online")
    before = copy.deepcopy(adapter.model.state_dict())
    for seed in range(2):
        adapter(images(6, seed))
    moved = {name for name, tensor in adapter.model.state_dict().items() if not torch.equal(tensor, before[name])}
    declared = {f"classifier.{name}" for name in case.method.parameters(adapter.model)}
    declared |= {f"branch.{name}" for name in case.method.buffers(adapter.model)}
    declared |= {name for name in before if name.startswith("memory.")}
    assert moved <= declared, f"these moved, too: {sorted(moved - declared)}"
    if case.method.learns:
        assert moved, "nothing moved"
        branch = {id(p) for p in adapter.model.branch.parameters()} if adapter.model.branch else set()
        assert not branch & {id(p) for p in case.method.parameters(adapter.model).values()}, "the branch may not learn"


def check_loss_falls_on_its_own_batch(case: Case) -> None:
    """The loss of a batch falls over the steps on it, or over those on a memory that holds it."""
    if case.method.learns:
        remembers = case.method.learns_from == "memory"
        adapter = case.adapter(steps=12, protocol="online" if remembers else "episodic")
        adapter(images(6))
        if remembers and adapter.trace.stopped == "nothing to learn":
            adapter(images(6))
        if adapter.trace.stopped != "source level":  # where the method itself ends the steps
            assert adapter.trace.steps == 12, f"of 12 steps {adapter.trace.steps} were taken"
        first, last = adapter.trace.losses[0], adapter.trace.losses[-1]
        assert last < first or adapter.trace.steps < 2, f"it was {first:g} before and {last:g} after 12 steps"


def check_works_without_grad(case: Case) -> None:
    """`torch.no_grad` and `torch.inference_mode` around it change nothing."""
    expected = case.adapter()(images(6))
    with torch.no_grad():
        assert torch.equal(case.adapter()(images(6)), expected), "no_grad changes the logits"
    with torch.inference_mode():
        inside = case.adapter()(images(6).clone())
        made_inside = images(6).clone()
    assert torch.equal(inside, expected), "inference_mode changes the logits"
    assert torch.equal(case.adapter()(made_inside), expected), "images made in inference_mode change the logits"


def check_seeded_runs_are_equal(case: Case) -> None:
    """Runs with one seed are equal, whatever the global random state is, and leave that alone."""
    results = []
    for somewhere in (1, 2):
        torch.manual_seed(somewhere)
        state = torch.get_rng_state()
        results.append(case.adapter(seed=3)(images(6)))
        assert torch.equal(torch.get_rng_state(), state), "the global random state was used"
    assert torch.equal(*results), "the logits depend on the global random state"
    once, again = case.adapter(protocol="online"), case.adapter(protocol="online")
    same = all(torch.equal(once(images(6, seed)), again(images(6, seed))) for seed in range(3))
    assert same, "two online streams differ"


def check_predict_at_equals_separate_runs(case: Case) -> None:
    """Predictions after several numbers of steps are those of a run for each number."""
    numbers = [0, 1, 3, 5]
    together = case.adapter().predict_at(numbers, images(6))
    for steps, logits in zip(numbers, together, strict=True):
        assert torch.equal(logits, case.adapter(steps=steps)(images(6))), f"they differ after {steps}"


def check_a_batch_like_the_source_is_left_to_it(case: Case) -> None:
    """With stop="source" a batch that looks like the source's is predicted by the source model, and is forgotten."""
    adapter = case.adapter(stop="source", protocol="online", norm=case.method.norm)
    with torch.no_grad():
        expected = adapter.model(images(6))
    never(adapter.model)
    adapter(images(6, seed=1))
    moved = _adapted(adapter)
    always(adapter.model)
    logits = adapter.predict_at([0, 3], images(6))
    assert adapter.trace.steps == 0, "steps were taken"
    assert adapter.trace.stopped == "left to source", f"it was not left to the source: {adapter.trace.stopped}"
    assert torch.equal(logits, torch.stack([expected, expected])), "the logits are not the source model's"
    never(adapter.model)
    assert_same(moved, _adapted(adapter))


def _adapted(adapter: Adapter) -> dict[str, Any]:
    """Everything about an adapter's model but how certain the source model was of the last images."""
    return {name: fact for name, fact in fingerprint(adapter.model).items() if name != "tensor recent.certainty"}


def check_the_gate_does_not_change_other_batches(case: Case) -> None:
    """With stop="source" a batch that does not look like the source's is adapted to as without it."""
    for protocol in ("episodic", "online"):
        # Statistics that are asked for stay, where small batches behind the gate would get others.
        gated = case.adapter(stop="source", protocol=protocol, norm=case.method.norm)
        free = case.adapter(protocol=protocol)
        never(gated.model)
        never(free.model)  # whose steps may have the size that the score gives them
        same = all(torch.equal(gated(images(6, seed)), free(images(6, seed))) for seed in range(2))
        assert same, f"the logits differ in the {protocol} protocol"
        assert 0 < (gated.trace.confidence or 0) <= 1, f"the confidence is {gated.trace.confidence}"


def check_memory_belongs_to_the_stream(case: Case) -> None:
    """A memory is in tensors of fixed shape that are changed in place; a reset and a state have all of it."""
    adapter = case.adapter(protocol="online")
    memory = adapter.model.memory
    if memory is None:
        return
    before, tensors = remembered(memory), named_tensors(memory)
    expected = [adapter(images(count, seed=count)) for count in (6, 4, 5)]
    changed = [name for name, tensor in named_tensors(memory).items() if tensor is not tensors.get(name)]
    assert not changed, f"made anew, not changed in place: {changed}"
    assert remembered(memory) != before, "three batches left nothing in the memory"
    adapter.reset()
    after = remembered(memory)
    left = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert not left, f"a reset leaves behind {left}"
    again = case.adapter(protocol="online")
    assert torch.equal(adapter(images(6, seed=6)), expected[0]), "the logits differ after a reset"
    again.load_state_dict(adapter.state_dict())
    for count, logits in zip((4, 5), expected[1:], strict=True):
        assert torch.equal(again(images(count, seed=count)), logits), "the logits differ after a state was loaded"


CHECKS: tuple[Callable[[Case], None], ...] = (
    check_finite_logits,
    check_zero_steps_is_predict,
    check_user_model_untouched,
    check_no_hooks_left,
    check_reset_is_exact,
    check_episodic_order_is_irrelevant,
    check_only_declared_tensors_move,
    check_loss_falls_on_its_own_batch,
    check_works_without_grad,
    check_seeded_runs_are_equal,
    check_predict_at_equals_separate_runs,
    check_a_batch_like_the_source_is_left_to_it,
    check_the_gate_does_not_change_other_batches,
    check_memory_belongs_to_the_stream,
)
