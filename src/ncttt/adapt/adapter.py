"""Adapter: a classifier that adapts to each batch before it predicts."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from copy import copy as shallow
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from ncttt.adapt.batch import Adaptation, Machinery, Trace
from ncttt.base.errors import InputError, nearest
from ncttt.base.optimizers import OptimizerFactory, make_optimizer
from ncttt.base.seeding import seeded
from ncttt.methods.base import Method
from ncttt.model.branched import Branched
from ncttt.model.certainty import Gate
from ncttt.model.norm import Policy, batch_share
from ncttt.model.snapshot import Snapshot

Protocol = Literal["episodic", "online", "continual"]
Norm = Policy | tuple[Policy, Policy]


class Adapter:
    """Calls like the classifier, but adapts to the batch first; works on a copy, not on what it was given.

    Steps, learning rate, optimizer and statistics default to the method's own. `protocol`: `episodic` forgets after
    each batch; `online` and `continual` go on until `reset()`, which an online stream calls at each new domain and a
    continual one never. `stop="source"` leaves a batch to the source model, with its weights and statistics, when that
    is as certain of it as of held-out source images, and else ends the steps when the batch scores like them, where the
    method has a score; a number is a level of the score given by hand, without such a look. `guard` falls back to the
    state before a batch whose loss or logits are not finite. Put the model on its device before; images follow it
    there. `copy=False` saves the memory and time of the copy: then the given model itself moves until `reset()`, in
    evaluation mode and frozen but for what moves.

    >>> import ncttt
    >>> adapter = ncttt.Adapter(ncttt.models.small(), ncttt.PTBN())
    >>> adapter(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 10])
    """

    @torch.inference_mode(False)
    def __init__(
        self,
        model: nn.Module,
        method: Method | None = None,
        *,
        steps: int | None = None,
        lr: float | None = None,
        optimizer: str | OptimizerFactory | None = None,
        protocol: Protocol = "episodic",
        norm: Norm | None = None,
        stop: Literal["source"] | float | None = None,
        guard: bool = True,
        seed: int = 0,
        copy: bool = True,
    ):
        if protocol not in get_args(Protocol):
            raise InputError(f"no protocol {protocol!r}{nearest(str(protocol), get_args(Protocol))}")
        self.method = _method_for(model, method)
        self.model = _own(model, self.method, copy)
        self.steps = _checked_count(self.method.steps if steps is None else steps)
        self.protocol, self.guard, self.seed = protocol, guard, seed
        self.trace = Trace()
        moving = self._moving()
        optimizer = self.method.optimizer if optimizer is None else optimizer
        lr = self.method.lr if lr is None else lr
        self._optimizer = make_optimizer(optimizer, moving.values(), lr) if moving else None
        buffers = self.method.buffers(self.model)
        self._moves_buffers = bool(buffers)
        tensors = {f"classifier.{name}": parameter for name, parameter in moving.items()}
        self._snapshot = Snapshot(
            tensors | {f"branch.{name}": buffer for name, buffer in buffers.items()}, self._optimizer
        )
        self._generator = torch.Generator().manual_seed(seed)
        self.norm = self._checked_norm(self.method.norm if norm is None else norm)
        self.stop = self._checked_stop(stop)
        self._gate = Gate(self.model, self._snapshot) if stop == "source" else None
        self._machinery = Machinery(self.model, self.method, self._optimizer, self.norm)

    def __call__(self, images: Tensor) -> Tensor:
        """Adapt to images `(B, C, H, W)` in [0, 1] and return their logits `(B, classes)`."""
        return self.predict_at([self.steps], images)[0]

    @torch.inference_mode(False)
    @torch.no_grad()
    def predict_at(self, steps: Sequence[int], images: Tensor) -> Tensor:
        """Logits `(len(steps), B, classes)` after each of those step counts, from one adaptation to the images.

        Online, the stream goes on from the last count. Counts behind a stop have the logits of the stop; all have those
        of the source model for a batch that is left to it, of which a stream remembers nothing.
        """
        if isinstance(steps, Tensor) and steps.ndim > 1:
            raise InputError(f"predict_at takes the step counts first; found a tensor {tuple(steps.shape)}")
        counts = [_checked_count(count) for count in steps]
        if not counts or counts != sorted(set(counts)):
            raise InputError(f"step counts must rise, as in [0, 1, 5, 20]; found {list(steps)}")
        images = self._ready(images)
        look = None if self._gate is None else self._gate.look(images)
        confidence, evidence = (None, None) if look is None else (look.confidence, look.evidence)
        if look is not None and look.like_source:
            self.trace = Trace(stopped="left to source", confidence=confidence, evidence=evidence)
            return torch.stack([look.logits] * len(counts))
        before = None if self.protocol == "episodic" else self._snapshot.state()
        run = Adaptation(self._machinery, images, self._level(len(images)))
        try:
            with seeded(self._next_seed(), images.device):
                rows = [_advanced(run, count) for count in counts]
        except BaseException:
            self._go_back(before)
            raise
        good = run.finite_rows(counts, rows) if self.guard else len(rows)
        if good < len(rows) or (self.protocol == "episodic" and (run.steps or self._moves_buffers)):
            self._go_back(before)
        if good < len(rows):
            rows[good:] = [self._unadapted(run)] * (len(rows) - good)
        trace = run.trace(fell_back=good < len(rows))
        self.trace = replace(trace, confidence=confidence, evidence=evidence)
        return torch.stack(rows)

    @torch.inference_mode(False)
    @torch.no_grad()
    def shift(self, images: Tensor, norm: Policy | None = None) -> Tensor:
        """In-distribution probability `(B,)` of each image under the branch as it stands: low means drifted.

        `norm` is the statistics policy to look with, the method's own by default; `"source"` makes the score of an
        image independent of the rest of its batch.
        """
        self._need_score("shift")
        score = self._machinery.score(self._ready(images), self.norm[0] if norm is None else norm)[1]
        assert score is not None
        return score

    def reset(self) -> None:
        """Forget all adaptation: source parameters, an optimizer without history, the first random state."""
        self._snapshot.reset()
        self._generator.manual_seed(self.seed)
        self.trace = Trace()

    def state_dict(self) -> dict[str, Any]:
        """The online state as tensors and numbers: `torch.save` it, `torch.load(..., weights_only=True)` it back."""
        return {**self._snapshot.state(), "generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` gave, in an adapter made with the same arguments."""
        if self.protocol == "episodic":
            raise InputError("an episodic adapter forgets after each batch; load a state into an online one")
        self._snapshot.load(state)
        self._generator.set_state(state["generator"])

    def __repr__(self) -> str:
        return f"Adapter({self.method!r}, steps={self.steps}, protocol={self.protocol!r}, norm={self.norm!r})"

    def _ready(self, images: Tensor) -> Tensor:
        self.model.check_images(images)
        images = images.to(self.model.mean)
        return images.clone() if images.is_inference() else images.detach()

    def _moving(self) -> dict[str, nn.Parameter]:
        """Unfreeze, in the copy, just what the method moves."""
        self.model.requires_grad_(False)
        moving = self.method.parameters(self.model)
        if not isinstance(moving, dict):
            raise InputError(f"{type(self.method).__name__}.parameters must give a dict by name; found {type(moving)}")
        if self.method.learns and not moving:
            raise InputError(f"{type(self.method).__name__} has a loss but nothing to move in this network")
        for parameter in moving.values():
            parameter.requires_grad_(True)
        return moving

    def _checked_norm(self, norm: Norm) -> tuple[Policy, Policy]:
        pair = (norm, norm) if isinstance(norm, str) else tuple(norm)
        if len(pair) != 2:
            raise InputError(f"norm must be one policy or a pair (gradient, prediction); found {norm!r}")
        if max(map(batch_share, pair)) > 0 and not self.model.batch_norms():
            warnings.warn(f"norm={norm!r} changes nothing: the classifier has no BatchNorm", stacklevel=4)
            return "source", "source"
        return pair

    def _checked_stop(self, stop: Literal["source"] | float | None) -> Literal["source"] | float | None:
        if stop is None:
            return None
        if stop != "source" and (isinstance(stop, bool | str) or not math.isfinite(stop)):
            raise InputError(f"stop must be 'source', a level of the score or None; found {stop!r}")
        if stop != "source":
            self._need_score("a level to stop at")
        elif self.method.source_level(self.model, 1) is not None:
            self._check_level()
        return stop

    def _check_level(self) -> None:
        if self.model.batch_norms() and self.norm[0] != self.method.gradient_norm:
            warnings.warn(f"the source's level was measured with other statistics than {self.norm[0]!r}", stacklevel=5)

    def _level(self, images: int) -> float | None:
        if isinstance(self.stop, str):
            return self.method.source_level(self.model, images)
        return self.stop

    @property
    def has_score(self) -> bool:
        """Whether the method has a score of its own, which `shift` gives."""
        return type(self.method).score is not Method.score

    def _need_score(self, what: str) -> None:
        if not self.has_score:
            raise InputError(f"{what} needs a method with a score of its own, such as NCTTT; found {self.method!r}")

    def _go_back(self, before: dict[str, Any] | None) -> None:
        """To the state before the batch: the source's for an episodic batch, the stream's otherwise."""
        if before is None:
            self._snapshot.reset()
        else:
            self._snapshot.load(before)

    def _unadapted(self, run: Adaptation) -> Tensor:
        """The prediction of the state before the batch, to which the model has gone back."""
        run.start_again()
        logits = run.logits()
        if not bool(logits.isfinite().all()):
            raise InputError("the model's logits are not finite even without adaptation; check its weights")
        return logits

    def _next_seed(self) -> int:
        """The same for every episodic call, a stream of seeds otherwise."""
        if self.protocol == "episodic":
            return self.seed
        return int(torch.randint(2**62, (), generator=self._generator, device="cpu"))


def _advanced(run: Adaptation, count: int) -> Tensor:
    run.advance(count)
    return run.logits()


def _checked_count(steps: int) -> int:
    try:
        count = operator.index(steps)
    except TypeError:
        count = -1
    if isinstance(steps, bool) or count < 0:
        raise InputError(f"a step count must be a whole number >= 0; found {steps!r}")
    return count


def _method_for(model: nn.Module, method: Method | None) -> Method:
    if not isinstance(model, nn.Module):
        raise InputError(f"an Adapter wraps an nn.Module; found {model!r}")
    own = model.method if isinstance(model, Branched) else None
    if method is None and own is None:
        raise InputError("a plain module needs a method, as in Adapter(net, PTBN()); found none")
    method = method or own
    if not isinstance(method, Method):
        raise InputError(f"method must be a Method, such as NCTTT(); found {method!r}")
    if method.has_branch and type(own) is not type(method):
        found = f"a model trained for {type(own).__name__}" if own else f"a plain {type(model).__name__}"
        raise InputError(
            f"{type(method).__name__} needs a model trained for it (ncttt.attach, or `ncttt train`); found {found}"
        )
    other = [name for name in method.branch_settings if getattr(own, name) != getattr(method, name)]
    if other:
        hint = "change others by dataclasses.replace(model.method, ...)"
        raise InputError(f"the model's branch was built with another {', '.join(other)} than this method's; {hint}")
    return method


def _own(model: nn.Module, method: Method, copied: bool) -> Branched:
    own = deepcopy(model) if copied else shallow(model)  # the latter shares all tensors, but not the method
    own = own if isinstance(own, Branched) else Branched(own, None, method)
    own.method = method
    return own.eval()
