"""Methods with teachers and memories against slow, obvious versions of them; planted faults make these checks fail."""

from collections.abc import Iterator
from unittest.mock import patch

import torch
from torch import Tensor, nn

import ncttt
from ncttt.methods import cotta
from stream_checks import BATCHES, confident, logits_by, plain_network, probabilities, stream


def shifted_views(batch: Tensor) -> Iterator[Tensor]:
    """Views without chance, one after another: the images moved on by ever more pixels."""
    number = 0
    while True:
        number += 1
        yield batch.roll(number, 3)


def slow_cross_entropy(taught: list[Tensor], logits: Tensor) -> list[Tensor]:
    """One number for each image."""
    return [
        -sum(t * s.log() for t, s in zip(target, probabilities(row), strict=True))  # type: ignore[misc]
        for target, row in zip(taught, logits, strict=True)
    ]


def slow_mean(rows: list[list[Tensor]]) -> list[Tensor]:
    """The mean over views of the probabilities of each image."""
    return [sum(each) / len(each) for each in zip(*rows, strict=True)]  # type: ignore[misc]


def follow(teacher: nn.Module, student: nn.Module, rate: float) -> None:
    with torch.no_grad():
        for mine, other in zip(teacher.parameters(), student.parameters(), strict=True):
            mine.copy_((1 - rate) * mine + rate * other)


def slow_cotta(
    model: ncttt.Branched, threshold: float, views: int, kept: float, lr: float
) -> Iterator[tuple[Tensor, bool]]:
    """Probabilities of each batch before its step, and whether they are a mean over views."""
    student, teacher, anchor = (plain_network(model) for _ in range(3))
    student.requires_grad_(True)
    # Where student and teacher are still equal the gradient is rounding, which Adam would blow up to a step.
    optimizer = torch.optim.SGD(student.parameters(), lr=lr)
    for batch in BATCHES:
        confidence = sum(probabilities(row).max() for row in logits_by(anchor, batch)) / len(batch)
        unsure = bool(confidence < threshold)
        given = shifted_views(batch)
        looks = [next(given) for _ in range(views)] if unsure else [batch]
        taught = slow_mean([[probabilities(row) for row in logits_by(teacher, look)] for look in looks])
        loss = sum(slow_cross_entropy(taught, logits_by(student, batch))) / len(batch)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[union-attr]
        optimizer.step()
        follow(teacher, student, 1 - kept)
        yield torch.stack(taught), unsure


def check_cotta_equals_a_slow_one(architecture: str = "resnet") -> None:
    """The teacher's mean prediction over views where the source is unsure, its own elsewhere."""
    settings = {"threshold": 0.63, "views": 3, "kept": 0.9}
    method = ncttt.CoTTA(**settings, restored=0.0, norm="source" if architecture == "vit" else "batch")
    model = confident(method, architecture)
    expected, unsure = zip(*slow_cotta(model, **settings, lr=0.1), strict=True)
    assert len(set(unsure)) == 2, "the source is sure of all batches or of none, so the test tells little"
    rounds = [shifted_views(batch.double()) for batch, often in zip(BATCHES, unsure, strict=True) for _ in range(often)]
    given = iter([next(views) for views in rounds for _ in range(3)])
    with patch.object(cotta, "strong_views", lambda images: next(given)):
        ours = stream(model, lr=0.1, optimizer="sgd").softmax(1)
    assert not list(given), "views that nobody asked for were made"
    torch.testing.assert_close(ours, torch.cat(expected))
    source = logits_by(plain_network(model), torch.cat(BATCHES[-1:])).softmax(1)
    assert (ours[-len(source) :] - source).abs().max() > 1e-3, "nothing was learned, so the test tells little"


def check_a_reset_forgets_the_teacher(method: ncttt.Method) -> None:
    """What came before `new_domain()` leaves nothing in a prediction without a step."""
    model = confident(method)
    adapter = ncttt.Adapter(model, protocol="online", lr=1e-2)
    before = adapter.predict_at([0], BATCHES[3].double())
    adapter.reset()
    for batch in BATCHES[:3]:
        adapter(batch.double())
    moved = adapter.predict_at([0], BATCHES[3].double())
    assert not torch.allclose(moved, before), "the teacher has learned nothing, so the test tells little"
    adapter.new_domain()
    torch.testing.assert_close(adapter.predict_at([0], BATCHES[3].double()), before, rtol=0, atol=0)
