"""Adapter: a classifier that adapts to each batch before it predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy as shallow
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ncttt.adapt import arguments
from ncttt.adapt.arguments import Norm, Stop
from ncttt.adapt.batch import AdaptableModel, Adaptation, Trace
from ncttt.adapt.protocols import Protocol, protocol_of
from ncttt.adapt.small_batches import SmallBatches
from ncttt.adapt.state import LastBatch, StreamModule, StreamState
from ncttt.adapt.turns import Turn, in_turn, leaving_buffers
from ncttt.base.errors import InputError
from ncttt.base.numbers import check_rate, check_seed
from ncttt.base.optimizers import OptimizerFactory, make_optimizer
from ncttt.base.seeding import Draws
from ncttt.methods.base import Method
from ncttt.model.branched import Branched
from ncttt.model.certainty import Gate, Look
from ncttt.model.norm import Policy, moves_buffers
from ncttt.model.snapshot import Snapshot, named_tensors
from ncttt.model.taps import check_copy, check_eager

if TYPE_CHECKING:
    from ncttt.adapt.watch import OnCollapse, Unadapted, Watch
    from ncttt.model.baked import Baked


class Adapter(StreamModule):
    """Calls like the classifier, but adapts to the batch first; works on a copy, not on what it was given.

    Steps, learning rate, optimizer and statistics default to the method's own. `protocol`, a name, an address or a
    `Protocol`: `episodic` forgets after each batch, `online` at each `new_domain()`, `continual` only at `reset()`.
    `stop="source"` leaves a batch to the source model, with its weights and statistics, when that is as confident on it
    as on held-out source images. Otherwise it ends the steps when the batch scores like source images, if the method
    has a score; a batch below 64 images gets statistics that suit its size, and one below 16 no steps, unless `norm`
    says otherwise. A number for `stop` is a level of the score, without that look at the source model. `guard` falls
    back to the state before a batch whose loss or logits are not finite. `on_collapse` watches, by one more forward
    pass for each batch, whether learning has made the predictions worse than those of the unadapted model under the
    same statistics: `reset` goes back to that model, predicts the batch by it and rests for a while before it learns
    again, a hundred times slower, `freeze` learns no more until `reset()`, `warn` says so once. `mean` and `std`
    normalise the input of a plain module, so that images are in [0, 1] outside. `copy=False` saves the memory and time
    of the copy: then the given model itself moves until `reset()`, in evaluation mode and frozen but for what moves.

    It is an `nn.Module` and can take the place of the classifier: in a `Sequential`, an evaluation loop, under
    `no_grad` and `inference_mode`. `to` moves all of it, and images follow it there; threads that share it take turns.
    It adapts whenever it is called: `train()` and `eval()` change nothing but `training`, and the model inside always
    stays in evaluation mode. To predict without adaptation, call the classifier itself, or what `bake` gives.

    >>> import ncttt
    >>> adapter = ncttt.Adapter(ncttt.models.small(), ncttt.PTBN(), mean=[0.5] * 3, std=[0.25] * 3)
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
        on_collapse: OnCollapse | None = None,
        seed: int = 0,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        copy: bool = True,
    ):
        super().__init__()
        self._turn, self._draws = Turn(), Draws()
        self.protocol = protocol_of(protocol)
        self.method = arguments.method_for(model, method)
        self.model = _own(arguments.normalising(model, self.method, mean, std), self.method, copy)
        self.steps = arguments.checked_steps(self.method.steps if steps is None else steps)
        self.guard, self.seed = guard, seed
        self.trace = Trace()
        self.source_logits: Tensor | None = None  # of the last batch, where `stop="source"` asked the source model
        self.model.memory = arguments.memory_of(self.method, self.model)
        moving = arguments.moving_parameters(self.method, self.model)
        optimizer = self.method.optimizer if optimizer is None else optimizer
        lr = self.method.lr if lr is None else lr
        check_rate("lr", lr)
        check_seed("seed", seed)
        self._optimizer = make_optimizer(optimizer, moving.values(), lr) if moving else None
        self.norm = arguments.norm_pair(self.method.norm if norm is None else norm, self.model)
        self._small_batches = SmallBatches(stop == "source", norm is not None, self.protocol.remembers)
        self.model.recent = arguments.recent_for(stop, self.protocol, self.model)
        self.model.windows = arguments.windows_for(self.norm, self.model)
        self.model.gathered = arguments.gathered_for(self.method, self.protocol, self.model)
        follows = self._small_batches.moves_statistics(self.norm)
        self._moves_statistics = follows or any(map(moves_buffers, self.norm))
        buffers = arguments.moving_buffers(self.method, self.model, self._moves_statistics)
        self._moves_buffers = bool(buffers)
        tensors = {f"classifier.{name}": parameter for name, parameter in moving.items()}
        self.watch = self._made_watch(on_collapse, buffers)
        watched = {} if self.watch is None else {f"watch.{k}": v for k, v in named_tensors(self.watch).items()}
        self._state = StreamState(Snapshot(tensors | buffers | watched, self._optimizer), self.protocol, seed)
        self.model.source = self._state.snapshot.source
        self.stop = arguments.checked_stop(stop, self.model, self.norm[0])
        self._gate = Gate(self.model, self._state.snapshot) if stop == "source" else None
        self._moving = list(moving.values())
        self._has_level = arguments.has_source_level(stop, self.model)
        self._adaptable = AdaptableModel(self.model, self.method, self._optimizer, self.norm)
        self._settings = {"lr": lr, "optimizer": type(self._optimizer).__name__, "seed": seed}
        self._last = LastBatch()
        self.training = False

    def forward(self, images: Tensor) -> Tensor:
        """Adapt to images `(B, C, H, W)` in [0, 1] and return their logits `(B, classes)`."""
        return self.predict_at([self.steps], images)[0]

    @in_turn
    @torch.inference_mode(False)
    @torch.no_grad()
    @leaving_buffers
    def predict_at(self, steps: Sequence[int], images: Tensor) -> Tensor:
        """Logits `(len(steps), B, classes)` after each of those numbers of steps, from one adaptation to the images.

        Online, the stream goes on from the last number. Numbers behind a stop have the logits of the stop; all have
        those of the source model for a batch that is left to it, of which a stream remembers nothing.
        """
        steps = arguments.rising_steps(steps)
        images = self._ready(images)
        look = self._look(images)
        self.source_logits = None if look is None else look.logits
        if look is not None and look.like_source:
            self.trace = Trace(stopped="left to source", confidence=look.confidence, evidence=look.evidence)
            self._end_batch(images, moved=False)
            return torch.stack([look.logits] * len(steps))
        logits, self.trace, moved = self._adapt(steps, images, look)
        self._end_batch(images, moved)
        if look is not None:
            self.trace = replace(self.trace, confidence=look.confidence, evidence=look.evidence)
        return logits

    @in_turn
    @torch.inference_mode(False)
    @torch.no_grad()
    @leaving_buffers
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

    @in_turn
    @torch.inference_mode(False)
    @torch.no_grad()
    @leaving_buffers
    def bake(self, images: Tensor | None = None) -> Baked:
        """A plain frozen module with the adapted weights and statistics in it, which predicts the last batch alike.

        With `images` it predicts those as a call would now, and the adapter learns nothing from them. Without, a stream
        is baked as it stands; where statistics come from the batch they are the last one's, which the adapter holds on
        to. Where a method returns logits from before its step, the state after it is baked.
        """
        from ncttt.adapt.baking import baked_as_it_stands, check_bakeable  # only who bakes needs it

        check_bakeable(self._adaptable)
        if images is None and self.protocol.remembers:
            left = self.trace.stopped == "left to source"
            suited = self._suited(self._last, self.steps)
            return self._baked_source() if left else baked_as_it_stands(suited, self._last)
        images = self._ready(self._last.images() if images is None else images)
        look = self._look(images)
        if look is not None and look.like_source:
            return self._baked_source()
        with self._state.kept():
            self._adapt([self.steps], images, look)
            return baked_as_it_stands(self._suited(images, self.steps), images)

    @property
    def has_score(self) -> bool:
        """Whether the method has a score of its own, which `shift` gives."""
        return arguments.has_score(self.method)

    def new_domain(self) -> None:
        """Say that images of another domain follow; a protocol that forgets at domains does so now."""
        if self.protocol.domains:
            self.reset()

    @in_turn
    def reset(self) -> None:
        """Forget all adaptation: source parameters, an optimizer without history, the first random state."""
        self._state.reset()
        self.trace, self._last = Trace(), LastBatch()

    def settings(self) -> dict[str, str]:
        """Everything that an adapter must have in common with one whose state it loads, as text by name."""
        from ncttt.adapt.state_checks import settings_of_adapter  # only who saves or loads a state needs it

        now = {"steps": self.steps, "norm": self.norm, "protocol": self.protocol.name, "stop": self.stop}
        watched = {} if self.watch is None else {"on_collapse": self.watch.policy}
        return settings_of_adapter(self.method, **self._settings, **now, **watched, guard=self.guard)

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        super().set_extra_state(state)
        self.trace, self._last = Trace(), LastBatch()

    def __repr__(self) -> str:
        return f"Adapter({self.method!r}, steps={self.steps}, protocol={self.protocol.name!r}, norm={self.norm!r})"

    def _ready(self, images: Tensor) -> Tensor:
        self.model.check_images(images)
        images = images.to(self.model.mean)
        return images.clone() if images.is_inference() else images.detach()

    def _look(self, images: Tensor) -> Look | None:
        return None if self._gate is None else self._gate.look(images)

    def _adapt(self, steps: list[int], images: Tensor, look: Look | None) -> tuple[Tensor, Trace, bool]:
        """Logits `(len(steps), B, classes)`, what happened on the way, and whether anything has moved."""
        before, random, forgets = self._state.before_batch(), self._state.random, False
        for parameter in self._moving:
            parameter.requires_grad_(True)  # a loop that evaluates may have frozen what looks like a classifier
        suited = self._suited(images, steps[-1])
        unadapted = self._watched(suited, images, look)
        if unadapted is not None and self.watch is not None:
            if self.watch.resting:
                self.watch.stay(self._state.snapshot, unadapted, len(images))
                return torch.stack([unadapted.logits] * len(steps)), Trace(stopped="resting"), True
            self.watch.slow(self._optimizer)
        gathered = self.model.gathered
        learned = images if gathered is None else gathered.group(images)
        run = Adaptation(suited, images, learned, self._level(len(images if learned is None else learned)))
        try:
            with self._draws.seeded(self._state.next_seed(), images.device):
                rows = [run.logits_at(number) for number in steps]
                good = run.finite_rows(steps, rows) if self.guard else len(rows)
                if good == len(rows):
                    run.remember()
                    forgets = self.protocol.remembers and bool(self.method.forgets(self.model))
                self._draws.whole |= run.steps > 0 or self._optimizer is None
        except BaseException:
            self._state.undo(before, random)
            raise
        fell_back = good < len(rows)
        if fell_back:
            self._state.go_back(before)
            rows[good:] = [self._unadapted(run)] * (len(rows) - good)
            if self._moves_statistics:  # the prediction has moved them
                self._state.go_back(before)
            if gathered is not None:
                gathered.count.zero_()  # what could not be learned from once cannot be later
        trace = run.trace(fell_back, forgets)
        if not self._has_level and trace.stopped == "steps":
            trace = replace(trace, stopped="no source level")
        trace = trace if unadapted is None else self._judged(rows, unadapted, trace)
        moved = not fell_back and (run.steps > 0 or self._moves_buffers)
        return torch.stack(rows), trace, moved or unadapted is not None

    def _made_watch(self, on_collapse: OnCollapse | None, buffers: Mapping[str, Tensor]) -> Watch | None:
        if on_collapse is None:
            return None
        from ncttt.adapt.watch import watch_for  # only who watches needs it

        follows = self._small_batches.moves_statistics(self.norm) or moves_buffers(self.norm[1])
        return watch_for(on_collapse, self.model, buffers, self._optimizer, follows)

    def _watched(self, suited: AdaptableModel, images: Tensor, look: Look | None) -> Unadapted | None:
        """What the unadapted model says of a batch, where it is asked; the source gate may have asked it already."""
        if self.watch is None:
            return None
        known = look.logits if look is not None and suited.norm[1] == "source" else None
        return self.watch.look(suited, self._state.snapshot, images, known)

    def _judged(self, rows: list[Tensor], unadapted: Unadapted, trace: Trace) -> Trace:
        """Put the unadapted prediction in place of logits that tell of collapse, and do as the policy says."""
        watch = self.watch
        assert watch is not None
        verdicts = [watch.verdict(unadapted.logits, row) for row in rows]
        if watch.acts:
            pairs = zip(rows, verdicts, strict=True)
            rows[:] = [unadapted.logits if verdict.collapsed else row for row, verdict in pairs]
        last, images = verdicts[-1], len(unadapted.logits)
        score = trace.shift_before if trace.shift_after is None else trace.shift_after
        trace = replace(trace, **last._asdict(), collapsed=last.collapsed, score=watch.score(score, images))
        if last.collapsed and watch.acts:
            watch.leave(self._state.snapshot, unadapted)
            return replace(trace, stopped="collapsed", shift_after=None, reset=False)
        if last.collapsed:
            watch.tell(last)
        watch.keep(unadapted, rows[-1], score)
        return trace

    def _suited(self, images: Tensor | LastBatch, steps: int) -> AdaptableModel:
        """The model as a batch of that size needs it."""
        return self._small_batches.suited(self._adaptable, len(images), steps)

    def _level(self, images: int) -> float | None:
        if isinstance(self.stop, str):
            return self.method.source_level(self.model, images) if self._has_level else None
        return self.stop

    def _end_batch(self, images: Tensor, moved: bool) -> None:
        if self._gate is not None:
            self._gate.remember()
        remembered = self._state.end_batch(moved, self.trace.reset)
        # A stream that forgot has no state left to bake; an episodic adapter makes it again.
        self._last = LastBatch(images if remembered or not self.protocol.remembers else None)

    def _baked_source(self) -> Baked:
        from ncttt.model.baked import bake  # as above

        with self._state.snapshot.saved():
            return bake(self.model, {})

    def _unadapted(self, run: Adaptation) -> Tensor:
        """The prediction of the state before the batch, to which the model has gone back."""
        run.start_again()
        logits = run.logits()
        if not bool(logits.isfinite().all()):
            raise InputError("the model's logits are not finite even without adaptation; check its weights")
        return logits


def _own(model: Branched, method: Method, copied: bool) -> Branched:
    check_eager(model)
    own = deepcopy(model) if copied else shallow(model)
    check_copy(own.classifier)
    own._modules = dict(own._modules)  # a shallow copy shares all tensors, but neither method nor memory
    own.method = method
    return own.eval()
