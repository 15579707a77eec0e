"""Memories of images that a stream has shown, balanced over the classes they were taken for, and methods that use one.

A memory is tensors of fixed shape. Which image goes where is decided one by one, in the order of the stream, on plain
numbers (`aged_slot`, `reservoir_slot`); the images themselves move once a batch. RoTTA and NOTE learn from them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.base.seeding import own_generator
from ncttt.methods.affine import affine_parameters
from ncttt.methods.base import Method, Prediction
from ncttt.methods.shared import check_whole, entropies
from ncttt.model.branched import Branched
from ncttt.model.gathered import check_same_shape

EMPTY = -1  # the label of a slot without an image


class ImageMemory(nn.Module):
    """Images `(N, C, H, W)` with the classes that were predicted for them, and how many came since the last step."""

    images: Tensor
    labels: Tensor
    waiting: Tensor

    def __init__(self, capacity: int, shape: Sequence[int]):
        super().__init__()
        self.register_buffer("images", torch.zeros(capacity, *shape))
        self.register_buffer("labels", torch.full((capacity,), EMPTY))
        self.register_buffer("waiting", torch.zeros((), dtype=torch.long))

    def places(self, logits: Tensor) -> dict[int, int]:
        """Which slots take which images of a batch with these logits; changes all that is remembered but the images."""
        raise NotImplementedError

    def remember(self, images: Tensor, logits: Tensor, every: int) -> None:
        """Take in a batch as it was predicted; a step that was due has been taken."""
        check_same_shape("the memory", self.images, images)
        taken = self.places(logits)
        self.images[list(taken)] = images[list(taken.values())].to(self.images)
        self.waiting.remainder_(every).add_(len(images))

    @property
    def filled(self) -> Tensor:
        """Which slots hold an image `(N,)`."""
        return self.labels != EMPTY


class AgedMemory(ImageMemory):
    """RoTTA's: classes have equal shares, and the oldest and least certain images go first."""

    ages: Tensor
    uncertainties: Tensor

    def __init__(self, capacity: int, shape: Sequence[int]):
        super().__init__(capacity, shape)
        self.register_buffer("ages", torch.zeros(capacity, dtype=torch.long))
        self.register_buffer("uncertainties", torch.zeros(capacity))

    def places(self, logits: Tensor) -> dict[int, int]:
        classes, taken = logits.shape[1], {}
        labels, ages, uncertainties = (part.tolist() for part in (self.labels, self.ages, self.uncertainties))
        shares = entropies(logits) / log(max(2, classes))

        def score(slot: int) -> float:
            return 1 / (1 + exp(-ages[slot] / len(ages))) + uncertainties[slot]

        for number, (label, share) in enumerate(zip(logits.argmax(1).tolist(), shares.tolist(), strict=True)):
            slot = aged_slot(label, labels, score, 0.5 + share, classes)
            if slot is not None:
                labels[slot], ages[slot], uncertainties[slot], taken[slot] = label, 0, share, number
            ages = [age + 1 for age in ages]
        for part, values in ((self.labels, labels), (self.ages, ages), (self.uncertainties, uncertainties)):
            part.copy_(torch.tensor(values, dtype=part.dtype))
        return taken


class ReservoirMemory(ImageMemory):
    """NOTE's: a random sample of each predicted class, the classes as equal as the stream allows."""

    seen: Tensor

    def __init__(self, capacity: int, shape: Sequence[int], classes: int):
        super().__init__(capacity, shape)
        self.register_buffer("seen", torch.zeros(classes, dtype=torch.long))

    def places(self, logits: Tensor) -> dict[int, int]:
        labels, seen, taken = self.labels.tolist(), self.seen.tolist(), {}
        draws = torch.rand(len(logits), 2, generator=own_generator()).tolist()
        for number, (label, (chance, choice)) in enumerate(zip(logits.argmax(1).tolist(), draws, strict=True)):
            seen[label] += 1
            slot = reservoir_slot(label, labels, seen[label], chance, choice)
            if slot is not None:
                labels[slot], taken[slot] = label, number
        self.labels.copy_(torch.tensor(labels))
        self.seen.copy_(torch.tensor(seen))
        return taken


def aged_slot(
    label: int, labels: Sequence[int], score: Callable[[int], float], own_score: float, classes: int
) -> int | None:
    """The slot for a new image of class `label` by RoTTA's rule, or None if it is not kept.

    While its class has less than its share of the slots, it takes an empty one, or replaces an image of the largest
    classes; else one of its own class. The image with the highest score goes, if it is higher than the new one's.

    >>> aged_slot(1, [0, 0, EMPTY, EMPTY], {0: 0.9, 1: 0.7}.get, 0.5, classes=2)
    2
    >>> aged_slot(0, [0, 0, EMPTY, EMPTY], {0: 0.9, 1: 0.7}.get, 0.5, classes=2)
    0
    """
    counts = Counter(own for own in labels if own != EMPTY)
    if counts[label] >= len(labels) / classes:
        rivals = [slot for slot, own in enumerate(labels) if own == label]
    elif EMPTY in labels:
        return labels.index(EMPTY)
    else:
        rivals = _of_largest(labels, counts)
    slot = max(rivals, key=score)
    return slot if score(slot) > own_score else None


def reservoir_slot(label: int, labels: Sequence[int], seen: int, chance: float, choice: float) -> int | None:
    """The slot for a new image of class `label` by NOTE's rule, or None if it is not kept.

    An empty one; or one of the largest classes, at random; an image of a largest class itself replaces one of its own,
    with probability (kept of it) / (`seen` of it, itself included). `chance` and `choice` are uniform in [0, 1).

    >>> reservoir_slot(1, [0, 0, 1], seen=1, chance=0.9, choice=0.9)
    1
    >>> reservoir_slot(0, [0, 0, 1], seen=4, chance=0.6, choice=0.9) is None
    True
    """
    if EMPTY in labels:
        return labels.index(EMPTY)
    counts = Counter(labels)
    rivals = _of_largest(labels, counts)
    if counts[label] == max(counts.values()):
        if chance >= counts[label] / seen:
            return None
        rivals = [slot for slot in rivals if labels[slot] == label]
    return rivals[int(choice * len(rivals))]


def _of_largest(labels: Sequence[int], counts: Counter[int]) -> list[int]:
    most = max(counts.values())
    return [slot for slot, own in enumerate(labels) if counts[own] == most]


@dataclass(frozen=True, kw_only=True)
class MemoryMethod(Method):
    """Learns from a memory of the stream, and from no batch by itself: a step for each `every` images that came.

    `capacity`: how many images the memory holds. `momentum`: by how much the statistics that predict follow those of
    the memory at each step. Scale and shift of normalisation layers move. Meant for a stream: an episodic call forgets
    its memory and never learns.
    """

    learns: ClassVar[bool] = True
    learns_from: ClassVar[Literal["batch", "memory"]] = "memory"

    steps: int = 1
    capacity: int = 64
    every: int = 64
    momentum: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, capacity=1, every=1)
        if self.gather:
            own = f"{type(self).__name__} learns from its memory, every {self.every} images"
            raise InputError(f"{own}; leave out gather={self.gather}")
        if not 0 <= self.momentum <= 1:
            raise InputError(f"momentum must be a number from 0 to 1; found {self.momentum!r}")

    def parameters(self, model: Branched) -> dict[str, nn.Parameter]:
        return affine_parameters(model, self.title)

    def remember(self, model: Branched, images: Tensor, prediction: Prediction) -> None:
        assert isinstance(model.memory, ImageMemory)
        model.memory.remember(images, prediction.logits, self.every)

    def image_shape(self, model: Branched) -> tuple[int, ...]:
        """The shape of the images to remember, which a memory must know before the first one comes."""
        if model.input_shape is None:
            name = type(self).__name__
            raise InputError(
                f"{name} keeps images, so it must know their shape, which a plain module does not tell: "
                f"model = ncttt.attach(net, None, ncttt.{name}(), images), then ncttt.Adapter(model)"
            )
        return model.input_shape
