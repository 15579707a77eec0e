"""Adapter: a classifier that adapts to each batch before it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy as shallow
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ncttt.adapt import arguments
from ncttt.adapt.arguments import Norm, Stop
from ncttt.adapt.batch import AdaptableModel, Adaptation, Trace
from ncttt.adapt.protocols import Protocol, protocol_of
from ncttt.base.errors import InputError
from ncttt.base.optimizers import OptimizerFactory, make_optimizer
from ncttt.base.seeding import seeded
from ncttt.methods.base import Method
from ncttt.model.branched import Branched
from ncttt.model.certainty import Gate
from ncttt.model.norm import Policy, moves_buffers
from ncttt.model.snapshot import Snapshot


class Adapter:
    """Calls like the classifier, but adapts to the batch first; works on a copy, not on what it was given.

    Steps, learning rate, optimizer and statistics default to the method's own. `protocol`, a name, an address or a
    `Protocol`: `episodic` forgets after each batch, `online` at each `new_domain()`, `continual` only at `reset()`.
    `stop="source"` leaves a batch to the source model, with its weights and statistics, when that is as certain of it
    as of held-out source images, and else ends the steps when the batch scores like them, where the method has a score;
    a number is a level of the score given by hand, without such a look. `guard` falls back to the state before a batch
    whose loss or logits are not finite. Put the model on its device before; images follow it there. `copy=False` saves
    the memory and time of the copy: then the given model itself moves until `reset()`, in evaluation mode and frozen
    but for what moves.

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
        protocol: str | Protocol = "episodic",
        norm: Norm | None = None,
        stop: Stop = None,
        guard: bool = True,
        seed: int = 0,
        copy: bool = True,
    ):
        self.protocol = protocol_of(protocol)
        self.method = arguments.method_for(model, method)
        self.model = _own(model, self.method, copy)
        self.steps = arguments.checked_steps(self.method.steps if steps is None else steps)
        self.guard, self.seed = guard, seed
        self.trace = Trace()
        moving = self._moving()
        optimizer = self.method.optimizer if optimizer is None else optimizer
        lr = self.method.lr if lr is None else lr
        self._optimizer = make_optimizer(optimizer, moving.values(), lr) if moving else None
        self.norm = arguments.norm_pair(self.method.norm if norm is None else norm, self.model)
        self._moves_statistics = any(map(moves_buffers, self.norm))
        buffers = self._buffers()
        self._moves_buffers = bool(buffers)
        tensors = {f"classifier.{name}": parameter for name, parameter in moving.items()}
        self._snapshot = Snapshot(tensors | buffers, self._optimizer)
        self._generator = torch.Generator().manual_seed(seed)
        self._batches = 0
        self.stop = arguments.checked_stop(stop, self.model, self.norm[0])
        self._gate = Gate(self.model, self._snapshot) if stop == "source" else None
        self._adaptable = AdaptableModel(self.model, self.method, self._optimizer, self.norm)

    def __call__(self, images: Tensor) -> Tensor:
        """Adapt to images `(B, C, H, W)` in [0, 1] and return their logits `(B, classes)`."""
        return self.predict_at([self.steps], images)[0]

    @torch.inference_mode(False)
    @torch.no_grad()
    def predict_at(self, steps: Sequence[int], images: Tensor) -> Tensor:
        """Logits `(len(steps), B, classes)` after each of those numbers of steps, from one adaptation to the images.

        Online, the stream goes on from the last number. Numbers behind a stop have the logits of the stop; all have
        those of the source model for a batch that is left to it, of which a stream remembers nothing.
        """
        steps = arguments.rising_steps(steps)
        images = self._ready(images)
        look = None if self._gate is None else self._gate.look(images)
        if look is not None and look.like_source:
            self.trace = Trace(stopped="left to source", confidence=look.confidence, evidence=look.evidence)
            self._end_batch(moved=False)
            return torch.stack([look.logits] * len(steps))
        logits, self.trace = self._adapt(steps, images)
        if look is not None:
            self.trace = replace(self.trace, confidence=look.confidence, evidence=look.evidence)
        return logits

    @torch.inference_mode(False)
    @torch.no_grad()
    def shift(self, images: Tensor, norm: Policy | None = None) -> Tensor:
        """In-distribution probability `(B,)` of each image under the branch as it stands; to watch drift use `Monitor`.

        `norm` is the statistics policy to look with, the method's own by default. Then shifted images tend to score
        lower, and an image's score depends on its batch. With `"source"` it does not, but shifted images tend to score
        higher: their features are weaker, and so nearer to the centre of the source's (docs/nc-ttt.md has numbers).
        """
        arguments.need_score(self.method, "shift")
        score = self._adaptable.score(self._ready(images), self.norm[0] if norm is None else norm)[1]
        assert score is not None
        return score

    @property
    def has_score(self) -> bool:
        """Whether the method has a score of its own, which `shift` gives."""
        return arguments.has_score(self.method)

    def new_domain(self) -> None:
        """Say that images of another domain follow; a protocol that forgets at domains does so now."""
        if self.protocol.domains:
            self.reset()

    def reset(self) -> None:
        """Forget all adaptation: source parameters, an optimizer without history, the first random state."""
        self._forget()
        self._batches = 0
        self.trace = Trace()

    def state_dict(self) -> dict[str, Any]:
        """The online state as tensors and numbers: `torch.save` it, `torch.load(..., weights_only=True)` it back."""
        return {**self._snapshot.state(), "generator": self._generator.get_state(), "batches": self._batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` gave, in an adapter made with the same arguments."""
        if not self.protocol.remembers:
            raise InputError(
                f"an {self.protocol.name} adapter forgets after each batch; load a state into an online one"
            )
        self._snapshot.load(state)
        self._generator.set_state(state["generator"])
        self._batches = state.get("batches", 0)

    def __repr__(self) -> str:
        return f"Adapter({self.method!r}, steps={self.steps}, protocol={self.protocol.name!r}, norm={self.norm!r})"

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

    def _buffers(self) -> dict[str, Tensor]:
        """What moves beside the parameters: buffers of the branch, and of BatchNorm layers under a running policy."""
        buffers = {f"branch.{name}": buffer for name, buffer in self.method.buffers(self.model).items()}
        if self._moves_statistics:
            layers = set(self.model.batch_norms())
            named = ((name, module) for name, module in self.model.named_modules() if module in layers)
            buffers |= {f"{name}.{key}": tensor for name, module in named for key, tensor in module.named_buffers()}
        return buffers

    def _adapt(self, steps: list[int], images: Tensor) -> tuple[Tensor, Trace]:
        """Logits `(len(steps), B, classes)`, and what happened on the way; then forget, if the protocol does."""
        before = self._snapshot.state() if self.protocol.remembers else None
        run = Adaptation(self._adaptable, images, self._level(len(images)))
        try:
            with seeded(self._next_seed(), images.device):
                rows = [run.logits_at(number) for number in steps]
        except BaseException:
            self._go_back(before)
            raise
        good = run.finite_rows(steps, rows) if self.guard else len(rows)
        fell_back = good < len(rows)
        if fell_back:
            self._go_back(before)
            rows[good:] = [self._unadapted(run)] * (len(rows) - good)
            if self._moves_statistics:  # the prediction has moved them
                self._go_back(before)
        self._end_batch(moved=not fell_back and (run.steps > 0 or self._moves_buffers))
        return torch.stack(rows), run.trace(fell_back)

    def _level(self, images: int) -> float | None:
        if isinstance(self.stop, str):
            return self.method.source_level(self.model, images)
        return self.stop

    def _end_batch(self, moved: bool) -> None:
        """Count the batch, and forget if the protocol says so, unless there is nothing to forget."""
        self._batches += 1
        if self.protocol.forgets_after(self._batches) and (moved or self.protocol.remembers):
            self._forget()

    def _forget(self) -> None:
        self._snapshot.reset()
        self._generator.manual_seed(self.seed)

    def _go_back(self, before: dict[str, Any] | None) -> None:
        """To the state before the batch: the source's where nothing is remembered, the stream's otherwise."""
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
        """The same for every batch where nothing is remembered, a stream of seeds otherwise."""
        if not self.protocol.remembers:
            return self.seed
        return int(torch.randint(2**62, (), generator=self._generator, device="cpu"))


def _own(model: nn.Module, method: Method, copied: bool) -> Branched:
    own = deepcopy(model) if copied else shallow(model)  # the latter shares all tensors, but not the method
    own = own if isinstance(own, Branched) else Branched(own, None, method)
    own.method = method
    return own.eval()
