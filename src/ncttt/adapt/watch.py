"""Watch: the unadapted model beside a stream, what it says of each batch, and the way back to it after a collapse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ncttt.adapt.batch import AdaptableModel
from ncttt.adapt.collapse import WINDOW, Verdict, judged, sums_of
from ncttt.base.errors import InputError
from ncttt.base.seeding import Draws
from ncttt.base.warning import warn_caller
from ncttt.methods.shared import number_of_classes
from ncttt.methods.shared_teacher import Values
from ncttt.model.branched import Branched
from ncttt.model.mirrors import mean_logits, mirror
from ncttt.model.norm import Policy, batch_share, moves_in_passing, needs_passes, statistics, stream
from ncttt.model.snapshot import Snapshot

OnCollapse = Literal["reset", "freeze", "warn"]
REST = 512  # images without steps after the first collapse
SLOWER = 0.01  # the learning rate after a collapse, as a share of that before
FOREVER = 2**62  # images


class CollapseWarning(UserWarning):
    """Adaptation has made the predictions of a stream worse."""


class Unadapted(NamedTuple):
    """What the unadapted model says of a batch: logits `(B, classes)`, and where the batch moves its statistics."""

    logits: Tensor
    statistics: dict[str, Tensor]


class Watch(nn.Module):
    """Watches the predictions of a stream, by one forward of the unadapted model for each batch.

    Its tensors belong to what moves, so that a reset, an error and a saved state treat them like the rest: the sums of
    the window, in which older images fade, and those of the branch's scores, which are told and do not decide; the
    statistics of the unadapted model, where they follow the stream; and how many images the adapter has still to rest,
    and will at the next collapse. A rest is twice as long as the one before it, so that of any number of images a
    stream that collapses again and again learns from a vanishing share. After it the stream learns at a hundredth of
    the rate, because at a tenth some go on losing, a little less than is noticed.
    """

    sums: Tensor
    scores: Tensor
    rest: Tensor

    def __init__(self, policy: OnCollapse, classes: int, statistics: Mapping[str, Tensor], rates: Sequence[float]):
        super().__init__()
        self.policy: OnCollapse = policy
        self.rates = rates  # of the optimizer's groups, before any collapse
        self.told = False
        self.register_buffer("sums", torch.zeros(6 + 2 * classes))
        self.register_buffer("scores", torch.zeros(2))  # their sum, and of how many images
        self.register_buffer("rest", torch.tensor([0, REST]))
        self.unadapted = Values(statistics)
        self._draws = Draws()
        self._draws.whole = True  # each look is a whole forward

    @property
    def resting(self) -> bool:
        """Whether the adapter takes no steps for now."""
        return bool(self.rest[0] > 0)

    @property
    def collapses(self) -> int:
        """How many collapses were undone since the stream began."""
        return (int(self.rest[1]) // REST).bit_length() - 1

    @property
    def acts(self) -> bool:
        """Whether collapse is undone, not only told."""
        return self.policy != "warn"

    def look(
        self, adaptable: AdaptableModel, snapshot: Snapshot, images: Tensor, known: Tensor | None = None
    ) -> Unadapted:
        """The classifier with the source's weights, or what is `known` of it; all that moves is as it was before."""
        if known is not None:
            return Unadapted(known, {})
        model, live, policy = adaptable.model, snapshot.live, in_passing(adaptable.norm[1], len(images))
        own = {name: tensor.clone() for name, tensor in self.unadapted.named().items()}
        windows = model.windows if moves_in_passing(policy) else None
        with self._draws.seeded(0, images.device), snapshot.saved():
            copy_into(live, own)
            with statistics(model.batch_norms(), policy, windows) as applied:
                logits = model(images)
            if adaptable.method.looks_twice:
                with statistics(model.batch_norms(), policy, windows):
                    logits = mean_logits(logits, model(mirror(images)))
            applied.moves.keep()
            return Unadapted(logits, {name: live[name].clone() for name in own})

    def slow(self, optimizer: Optimizer | None) -> None:
        """Give the optimizer the rates that the collapses so far leave it."""
        for group, rate in zip(optimizer.param_groups if optimizer else (), self.rates, strict=True):
            group["lr"] = rate * SLOWER**self.collapses

    def verdict(self, unadapted: Tensor, adapted: Tensor) -> Verdict:
        """The verdict on the window that a batch with these logits would end."""
        return judged(self._with(unadapted, adapted))

    def score(self, score: float | None, images: int) -> float | None:
        """The branch's mean score over the window that so many images with this mean would end."""
        total, count = self._scores_with(score, images).tolist()
        return None if score is None else total / count

    def keep(self, unadapted: Unadapted, adapted: Tensor, score: float | None) -> None:
        """Let a batch into the window."""
        self.sums.copy_(self._with(unadapted.logits, adapted))
        self.scores.copy_(self._scores_with(score, len(adapted)))
        copy_into(self.unadapted.named(), unadapted.statistics)

    def leave(self, snapshot: Snapshot, unadapted: Unadapted) -> None:
        """Become the unadapted model, with an empty window, and rest."""
        length = int(self.rest[1])
        snapshot.reset()
        self.rest.copy_(torch.tensor([FOREVER if self.policy == "freeze" else length, 2 * length]))
        self.stay(snapshot, unadapted, 0)

    def stay(self, snapshot: Snapshot, unadapted: Unadapted, images: int) -> None:
        """Go on resting for so many images, in which statistics that follow the stream still do."""
        self.rest[0] -= images
        copy_into(snapshot.live, unadapted.statistics)
        copy_into(self.unadapted.named(), unadapted.statistics)

    def tell(self, verdict: Verdict) -> None:
        """Warn, once."""
        if not self.told:
            self.told = True
            warn_caller(
                f"adaptation has made the predictions worse: they agree with the unadapted model on "
                f"{verdict.agreement:.0%} of the last images; use on_collapse='reset' (--on-collapse reset), a smaller "
                "lr, or mixed batches",
                CollapseWarning,
            )

    def _with(self, unadapted: Tensor, adapted: Tensor) -> Tensor:
        return fading(len(adapted)) * self.sums + sums_of(unadapted, adapted).to(self.sums)

    def _scores_with(self, score: float | None, images: int) -> Tensor:
        new = 0 if score is None else images
        return fading(images) * self.scores + self.scores.new_tensor([(score or 0.0) * new, new])


def fading(images: int) -> float:
    """What is left of a window when so many images come."""
    return max(0.0, 1 - images / WINDOW)


def watch_for(
    on_collapse: OnCollapse, model: Branched, moving: Mapping[str, Tensor], optimizer: Optimizer | None, follows: bool
) -> Watch | None:
    """The watch that a policy asks for; none where nothing moves but statistics, which cannot collapse.

    `follows` says whether predictions may use statistics that follow the stream, which the unadapted model then needs.
    """
    if on_collapse not in get_args(OnCollapse):
        known = ", ".join(map(repr, get_args(OnCollapse)))
        raise InputError(f"on_collapse must be one of {known} or None; found {on_collapse!r}")
    if optimizer is None and model.memory is None:
        return None
    kept = ("branch.", "memory.", "gathered.", "recent.")
    followed = {name: tensor for name, tensor in moving.items() if not name.startswith(kept)}
    rates = [group["lr"] for group in optimizer.param_groups] if optimizer else []
    return Watch(on_collapse, number_of_classes(model), followed if follows else {}, rates).to(model.mean)


def in_passing(policy: Policy, images: int) -> Policy:
    """The policy of one pass that moves statistics as far as this one does with a batch of so many images.

    >>> in_passing("batch", 8), in_passing("running(0.5, 2)", 2)
    ('batch', 'stream(0.5)')
    """
    return stream(1 - (1 - batch_share(policy)) ** (1 / images)) if needs_passes(policy) else policy


def copy_into(tensors: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Give tensors these values, in place, by name."""
    for name, value in values.items():
        tensors[name].copy_(value)
