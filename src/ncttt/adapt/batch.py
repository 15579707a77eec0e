"""Adaptation to one batch: the copies it learns from, the steps, the rule that ends them, predictions on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Objective, Prediction
from ncttt.model.branched import Branched
from ncttt.model.copies import copies_of, crop_shape
from ncttt.model.mirrors import mean_logits, mirror
from ncttt.model.norm import Moves, Policy, looking, moves_in_passing, needs_passes, predicting, statistics, stepping


@dataclass(frozen=True)
class Trace:
    """What one call of an `Adapter` did.

    `stopped` is `steps` (all were taken), `left to source` (the source model predicted the batch, being as confident on
    it as on source images), `source level` (the batch's score reached that of source images), `no source level` (all
    steps were taken, because the branch cannot tell source images from others), `guard` (something was not finite, so
    the state before the batch predicted it), `collapsed` (learning had made the predictions worse, so the unadapted
    model predicted it), `resting` (the unadapted model predicted it, because that was not long ago), `gathering` (it
    waits for others to be learned from together), `remembered` (the method has a memory and no loss) or `nothing to
    learn` (the method has no loss, or the batch has fewer than 16 images behind `stop="source"`). `losses` holds the
    loss before each step taken, those that the guard undid included.
    Shift scores are means over the batch (before the steps over the group that it completes, where a method gathers);
    None for methods without a score and batches left to the source, and after the steps also where the prediction uses
    other statistics than the gradient. `confidence` (mean largest softmax probability) and `evidence` (mean log-sum-exp
    of the logits) are the source model's of the batch, where `stop="source"` looked. `reset` says that the method sent
    the stream back to its beginning after the batch. With `on_collapse`, `collapsed` tells whether the predictions are
    worse than the unadapted model's by its own judgement, and the numbers are those of the window that the batch ends,
    before anything was undone: the `agreement` of both, the `regret` and how much of it is `allowed`, the `class_shift`
    and the rise of the `entropy` (`ncttt.adapt.collapse.Verdict`), and the mean shift `score` after the steps, or
    before them where that is None.
    """

    losses: tuple[float, ...] = ()
    steps: int = 0
    stopped: str = "not called yet"
    shift_before: float | None = None
    shift_after: float | None = None
    fell_back: bool = False
    confidence: float | None = None
    evidence: float | None = None
    reset: bool = False
    collapsed: bool = False
    agreement: float | None = None
    regret: float | None = None
    allowed: float | None = None
    class_shift: float | None = None
    entropy: float | None = None
    score: float | None = None


@dataclass(frozen=True)
class AdaptableModel:
    """A model, the method that adapts it, the optimizer over what moves, if anything does, and two policies."""

    model: Branched
    method: Method
    optimizer: torch.optim.Optimizer | None
    norm: tuple[Policy, Policy]

    @property
    def same_statistics(self) -> bool:
        """Whether the gradient sees the statistics that the prediction has."""
        return self.norm[0] == self.norm[1] and not needs_passes(self.norm[1])

    def score(self, images: Tensor, policy: Policy) -> tuple[Tensor, Tensor | None]:
        """Logits and in-distribution score from one full pass, which moves nothing."""
        with statistics(self.model.batch_norms(), looking(policy), self._windows(policy)):
            return self._score(images)

    def predict(self, images: Tensor) -> tuple[Prediction, Moves]:
        """Logits, the score of the same pass where the method has one, and where the pass would move statistics."""
        scored = type(self.method).score is not Method.score and self.predicts_by_forward
        prediction, moves = self.predict_once(images, scored)
        if self.method.looks_twice:  # in a pass of its own, so that statistics count every image once
            other, _ = self.predict_once(mirror(images))
            prediction = prediction._replace(logits=mean_logits(prediction.logits, other.logits))
        return prediction, moves

    @property
    def predicts_by_forward(self) -> bool:
        """Whether a prediction is a forward of the classifier and nothing more."""
        return type(self.method).predict is Method.predict

    @contextmanager
    def gradient_pass(self) -> Iterator[Moves]:
        """The statistics of a step inside the `with` block; those of a running policy move in every layer."""
        policy = stepping(self.norm[0])
        whole = self.model.whole_passes() if needs_passes(policy) else nullcontext()
        with whole, statistics(self.model.batch_norms(), policy, self._windows(policy)) as applied:
            yield applied.moves

    def move_statistics(self, images: Tensor) -> None:
        """Make the passes of a running policy, unless the gradient passes move the buffers."""
        stepped = self.optimizer is not None and needs_passes(self.norm[0])
        if needs_passes(self.norm[1]) and not stepped:
            with statistics(self.model.batch_norms(), self.norm[1]) as applied:
                self.model(images)
                applied.check_ran()

    def predict_once(self, images: Tensor, scored: bool = False) -> tuple[Prediction, Moves]:
        """The same from the images as they are, never mirrored."""
        policy = predicting(self.norm[1])
        with statistics(self.model.batch_norms(), policy, self._windows(policy)) as applied:
            prediction = Prediction(*self._score(images)) if scored else self.method.predict(self.model, images)
            applied.check_ran()
            return prediction if isinstance(prediction, Prediction) else Prediction(prediction), applied.moves

    def _windows(self, policy: Policy) -> nn.ModuleList | None:
        return self.model.windows if moves_in_passing(policy) else None

    def _score(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        logits, features = self.model.forward_with_features(images)
        return logits, self.method.score(self.model, features, logits)


class Adaptation:
    """One batch on its way: ask for the `logits_at` so many steps, and at the end for the `trace`.

    `learned` are the images that the steps learn from: the batch itself, or a group that it completes; None where it
    has to wait for others.
    """

    def __init__(self, model: AdaptableModel, images: Tensor, learned: Tensor | None, level: float | None):
        self._model, self._images, self._learned, self._level = model, images, learned, level
        self._losses: list[Tensor] = []
        self._first_score: Tensor | None = None
        self._prediction: Prediction | None = None
        self._moves = Moves()  # of the pass that predicted
        self._lags = self._moved_statistics = False
        without_loss = "nothing to learn" if model.model.memory is None else "remembered"
        self._stopped = ("gathering" if learned is None else "") if model.optimizer else without_loss

    def advance(self, steps: int) -> None:
        """Take steps until there are that many, or until the batch scores like source images."""
        if self._level is not None and not self._losses and not self._stopped and steps:
            self._first_score = self._look()
            self._stop_at_source(self._first_score)
        while not self._stopped and len(self._losses) < steps:
            self._step()

    def logits_at(self, steps: int) -> Tensor:
        """Logits `(B, classes)` after that many steps."""
        self.advance(steps)
        return self.logits()

    def logits(self) -> Tensor:
        """Logits `(B, classes)` of the model as it stands, or those that the last step's objective came with."""
        if self._prediction is None:
            if not self._moved_statistics:
                self._model.move_statistics(self._images)
                self._moved_statistics = True
            self._prediction, self._moves = self._model.predict(self._images)
        return self._prediction.logits

    def remember(self) -> None:
        """Move the statistics by the batch, and let the method remember it, as it was predicted last."""
        self._moves.keep()
        if self._model.model.gathered is not None:
            self._model.model.gathered.keep(self._images)
        if self._model.model.memory is not None and self._prediction is not None:
            self._model.method.remember(self._model.model, self._images, self._prediction)

    def trace(self, fell_back: bool, reset: bool = False) -> Trace:
        """What happened; the score after the steps is that of the last prediction."""
        last = self._prediction.score if self._prediction and self._model.same_statistics else None
        first = last if self._first_score is None else self._first_score
        return Trace(
            losses=tuple(self._loss_values()),
            steps=self.steps,
            stopped="guard" if fell_back else self._stopped or "steps",
            shift_before=None if first is None else first.mean().item(),
            shift_after=None if last is None else last.mean().item(),
            fell_back=fell_back,
            reset=reset,
        )

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self._losses)

    def finite_rows(self, steps: Sequence[int], rows: Sequence[Tensor]) -> int:
        """How many of the logits after those steps come before anything, loss or logit, that is not finite."""
        losses = self._loss_values()
        for number, (taken, row) in enumerate(zip(steps, rows, strict=True)):
            if not bool(row.isfinite().all()) or not all(abs(loss) < torch.inf for loss in losses[:taken]):
                return number
        # Logits from before the last step cannot show that it broke the model.
        return len(rows) - 1 if self._lags and not self._moved_are_finite() else len(rows)

    def start_again(self) -> None:
        """Forget the prediction, because the model was put back to the state before the batch."""
        self._prediction, self._lags, self._moved_statistics = None, False, False

    def _loss_values(self) -> list[float]:
        """The losses as numbers; asked for once the steps are done, so that a GPU need not wait for each."""
        return torch.stack(self._losses).tolist() if self._losses else []

    def _moved_are_finite(self) -> bool:
        assert self._model.optimizer is not None
        moved = [parameter for group in self._model.optimizer.param_groups for parameter in group["params"]]
        return all(bool(parameter.isfinite().all()) for parameter in moved)

    def _objective(self) -> Objective | None:
        method = self._model.method
        assert self._learned is not None
        crop = method.crop if self._takes_crops() else 1.0
        images = copies_of(self._learned, method.copies, method.mirrored, crop)
        objective = method.adaptation_loss(self._model.model, images)
        if objective is None:
            return None
        if not isinstance(objective, Objective) or not _can_be_lowered(objective.loss):
            what = f"{type(method).__name__}.adaptation_loss"
            raise InputError(f"{what} must give an Objective whose loss is a scalar with a gradient; found {objective}")
        loss, score, logits, pace = objective
        score = None if score is None else score[: len(self._learned)]
        return Objective(loss, score, None if logits is None else self._own_logits(logits), pace)

    def _takes_crops(self) -> bool:
        """Whether the classifier runs on images of the size of the method's crops."""
        method, images = self._model.method, self._learned
        assert images is not None
        return method.crop == 1 or self._model.model.takes(crop_shape(images, method.crop))

    def _own_logits(self, logits: Tensor) -> Tensor | None:
        """The prediction of the batch that the logits of a gradient pass give; None where they lack a part of it."""
        method, count = self._model.method, len(self._images)
        both = not method.looks_twice or method.copies > 1
        if self._learned is not self._images or method.crop < 1 or not both:
            return None
        return mean_logits(logits[:count], logits[count : 2 * count]) if method.looks_twice else logits[:count]

    def _look(self) -> Tensor | None:
        """The score before any step, from the pass that predicts where both use the same statistics."""
        if not self._model.same_statistics or self._learned is not self._images:
            assert self._learned is not None
            return self._model.score(self._learned, self._model.norm[0])[1]
        self.logits()
        return self._prediction.score if self._prediction else None

    def _stop_at_source(self, score: Tensor | None) -> None:
        if self._level is not None and score is not None and score.mean() >= self._level:
            self._stopped = "source level"

    def _step(self) -> None:
        optimizer = self._model.optimizer
        assert optimizer is not None
        with torch.enable_grad(), self._model.gradient_pass() as moves:
            loss, score, logits, pace = self._objective() or Objective(None)
            score = None if score is None else score.detach()
            if self._first_score is None:
                self._first_score = score
            if self._losses:
                self._stop_at_source(score)
            if loss is None:
                self._stopped = self._stopped or "nothing to learn"
                if logits is not None:
                    self._prediction, self._moves = Prediction(logits.detach(), score), moves
                return
            if pace is not None and not pace:
                self._stopped = self._stopped or "source level"
            if self._stopped:
                return
            loss.backward()
        with _at_pace(optimizer, pace):
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        self._model.method.after_step(self._model.model)
        self._losses.append(loss.detach())
        self._lags = logits is not None
        self._prediction = None if logits is None else Prediction(logits.detach(), score)
        self._moves = moves


@contextmanager
def _at_pace(optimizer: torch.optim.Optimizer, pace: Tensor | None) -> Iterator[None]:
    """Learning rates times the pace, inside the `with` block."""
    if pace is None:
        yield
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate * pace.item()
    try:
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


def _can_be_lowered(loss: Tensor | None) -> bool:
    return loss is None or (loss.ndim == 0 and loss.requires_grad)
