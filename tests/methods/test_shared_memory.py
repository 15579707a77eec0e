"""The balanced memories of RoTTA and NOTE: insertion and removal by hand, and by what they promise."""

import math
import random

import pytest
import torch
from torch import Tensor, nn

import ncttt
from ncttt import InputError
from ncttt.methods.shared_memory import EMPTY, AgedMemory, ReservoirMemory, aged_slot, reservoir_slot
from ncttt.testing.cases import Case, attached, images, never, resnet

E = EMPTY
METHODS = [ncttt.RoTTA, ncttt.NOTE]


def pictures(*numbers: int) -> Tensor:
    """Images that are known by their only pixel."""
    return torch.tensor(numbers, dtype=torch.float32).view(-1, 1, 1, 1)


def logits_of(*rows: tuple[int, float]) -> Tensor:
    """For each image a class of two and the probability that it is the other one."""
    return torch.tensor([[1 - p, p] if label == 0 else [p, 1 - p] for label, p in rows]).log()


def share(p: float) -> float:
    """Entropy of two classes as a share of the largest."""
    return -(p * math.log(p) + (1 - p) * math.log(1 - p)) / math.log(2)


@pytest.mark.parametrize(
    ("label", "labels", "scores", "own", "expected"),
    [
        (0, [0, E, E, E], [0.9], 0.5, 1),  # less than its half of four slots: the first empty one
        (0, [0, E, 0, E], [0.6, 0, 0.8, 0], 0.5, 2),  # it has its half: the worst of its own goes, and none is filled
        (0, [0, E, 0, E], [0.6, 0, 0.8, 0], 0.9, None),  # itself is the worst
        (0, [1, 1, 1, 0], [0.6, 0.9, 0.7, 1.0], 0.5, 1),  # full: the worst of the largest class, not of all
        (0, [1, 1, 1, 0], [0.6, 0.9, 0.7, 1.0], 0.95, None),
        (2, [0, 0, 1, 1], [0.6, 0.7, 0.9, 0.8], 0.5, 2),  # of both largest classes
    ],
)
def test_aged_slots_by_hand(label, labels, scores, own, expected):
    assert aged_slot(label, labels, scores.__getitem__, own, classes=3 if label == 2 else 2) == expected


def test_ages_and_uncertainties_by_hand():
    memory = AgedMemory(4, (1, 1, 1))
    memory.remember(pictures(1, 2, 3), logits_of((0, 0.1), (0, 0.3), (1, 0.2)), every=64)
    assert memory.labels.tolist() == [0, 0, 1, E]
    assert memory.ages.tolist()[:3] == [3, 2, 1]
    assert memory.uncertainties.tolist()[:3] == pytest.approx([share(0.1), share(0.3), share(0.2)])
    # Class 0 has its two slots. Sigmoid of age / 4 plus uncertainty: 0.679 + 0.469 and 0.622 + 0.881: the second goes.
    memory.remember(pictures(4), logits_of((0, 0.2)), every=64)
    assert memory.images.flatten().tolist() == [1, 4, 3, 0]
    assert memory.ages.tolist()[:3] == [4, 1, 2]
    # 0.731 + 0.469 and 0.562 + 0.722 are less than 0.5 + 0.971: the new one is not kept, and the others get older.
    memory.remember(pictures(5), logits_of((0, 0.4)), every=64)
    assert memory.images.flatten().tolist() == [1, 4, 3, 0]
    assert memory.ages.tolist()[:3] == [5, 2, 3]
    assert memory.waiting == 5


def test_an_image_that_another_of_its_batch_replaces_is_never_seen():
    memory = AgedMemory(2, (1, 1, 1))
    memory.remember(pictures(1, 2), logits_of((0, 0.4), (0, 0.1)), every=64)
    assert memory.images.flatten().tolist() == [2, 0]
    assert memory.labels.tolist() == [0, E]


@pytest.mark.parametrize(
    ("label", "labels", "seen", "chance", "choice", "expected"),
    [
        (0, [0, E, E], 2, 0.9, 0.9, 1),  # an empty slot
        (1, [0, 0, 2], 1, 0.9, 0.0, 0),  # of a smaller class: one of the largest goes, whatever the chance
        (1, [0, 0, 2], 1, 0.9, 0.5, 1),
        (0, [0, 0, 2], 4, 0.49, 0.5, 1),  # of the largest: one of its own goes, with probability 2 / 4
        (0, [0, 0, 2], 4, 0.51, 0.5, None),
        (2, [0, 0, 2, 2], 4, 0.49, 0.99, 3),  # of two largest classes its own
        (1, [0, 0, 2, 2], 4, 0.99, 0.99, 3),
    ],
)
def test_reservoir_slots_by_hand(label, labels, seen, chance, choice, expected):
    assert reservoir_slot(label, labels, seen, chance, choice) == expected


def test_a_reservoir_of_one_class_keeps_each_image_with_the_same_probability():
    numbers, kept, trials = random.Random(0), [0] * 6, 6000
    for _ in range(trials):
        labels, held = [E, E], [0, 0]
        for image in range(6):
            slot = reservoir_slot(0, labels, image + 1, numbers.random(), numbers.random())
            if slot is not None:
                labels[slot], held[slot] = 0, image
        for image in held:
            kept[image] += 1
    for count in kept:
        assert count / trials == pytest.approx(1 / 3, abs=4 * math.sqrt(2 / 9 / trials))


def test_a_reservoir_remembers_what_it_has_seen_of_each_class():
    memory = ReservoirMemory(2, (1, 1, 1), classes=2)
    memory.remember(pictures(1, 2), logits_of((0, 0.1), (0, 0.1)), every=64)
    assert (memory.labels.tolist(), memory.seen.tolist()) == ([0, 0], [2, 0])
    memory.remember(pictures(3), logits_of((1, 0.1)), every=64)
    assert sorted(memory.labels.tolist()) == [0, 1]
    assert 3 in memory.images.flatten().tolist()
    assert memory.seen.tolist() == [2, 1]


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("classes", [1, 5])
def test_a_stream_of_few_classes_leaves_room(kind, classes):
    """A class of RoTTA's has its share and no more; NOTE's fills up, as evenly as it can."""
    memory = kind(capacity=10).memory(attached("resnet", kind()))
    logits = 5 * nn.functional.one_hot(torch.arange(100) % classes, 5).float()
    memory.remember(images(100), logits, every=64)
    counts = memory.labels[memory.filled].bincount(minlength=classes)[:classes]
    assert counts.tolist() == [2 if classes == 5 or kind is ncttt.RoTTA else 10] * classes


@pytest.mark.parametrize("kind", METHODS)
def test_a_memory_larger_than_the_stream_never_steps(kind):
    adapter = ncttt.Adapter(attached("resnet", kind()), protocol="online")
    for seed in range(3):
        adapter(images(20, seed))
        assert (adapter.trace.steps, adapter.trace.stopped) == (0, "nothing to learn")
    adapter(images(20))
    assert adapter.trace.steps == 0
    adapter(images(20))  # 80 came before it
    assert (adapter.trace.steps, adapter.trace.stopped) == (1, "steps")
    adapter(images(20))
    assert adapter.trace.steps == 0


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("stop", [None, "source"])
@pytest.mark.filterwarnings("error::ncttt.adapt.small_batches.SmallBatchWarning")
def test_images_one_by_one_learn_every_so_many(kind, stop):
    """The size of a batch is no reason to warn, nor to be careful behind the gate: the memory's images teach."""
    case = Case("resnet", kind(capacity=4, every=3))
    adapter = case.adapter(protocol="online", steps=1, stop=stop)
    never(adapter.model)
    taken = []
    for seed in range(8):
        assert adapter(images(1, seed)).isfinite().all()
        taken.append(adapter.trace.steps)
    assert taken == [0, 0, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize(("kind", "passes"), [(ncttt.RoTTA, 3), (ncttt.NOTE, 2)])
def test_no_forward_is_made_that_nobody_reads(kind, passes):
    adapter, count = ncttt.Adapter(attached("resnet", kind(every=6)), protocol="online"), []
    adapter.model.classifier.register_forward_hook(lambda *_: count.append(1))
    adapter(images(6))
    assert len(count) == 1
    adapter(images(6))
    assert len(count) == 1 + passes


@pytest.mark.parametrize("kind", METHODS)
def test_shapes_that_are_not_known_or_not_the_same_are_one_error_each(kind):
    with pytest.raises(
        InputError, match=rf"{kind.__name__} keeps images.*ncttt.attach\(net, None, ncttt.{kind.__name__}"
    ):
        ncttt.Adapter(resnet(), kind())
    adapter = ncttt.Adapter(ncttt.attach(resnet(), None, kind(), images(2)))
    with pytest.raises(InputError, match=r"holds images of shape \(3, 16, 16\).*found \(3, 24, 24\)"):
        adapter(images(4, size=24))


@pytest.mark.parametrize("kind", METHODS)
def test_a_network_without_normalisation_is_one_error(kind):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
    with pytest.raises(InputError, match=f"{kind.title} moves scale and shift of normalisation layers; found none"):
        ncttt.attach(net, None, kind(), images(2))


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [({"capacity": 0}, "capacity must be"), ({"every": 1.5}, "every must be"), ({"momentum": 2}, "momentum must be")],
)
def test_settings_are_checked(kind, settings, message):
    with pytest.raises(InputError, match=message):
        kind(**settings)
