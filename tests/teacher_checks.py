"""Methods with teachers and memories against slow, obvious versions of them; planted faults make these checks fail."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from unittest.mock import patch

import torch
from torch import Tensor, nn

import ncttt
from ncttt.methods import cotta, rotta, shared_memory
from ncttt.testing.cases import CLASSES
from stream_checks import BATCHES, affine, confident, entropy, logits_by, plain_network, probabilities, stream

STREAM = torch.cat(BATCHES)


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


class SlowNorm(nn.Module):
    """A BatchNorm as a rule of its own: given features, its statistics and whether it trains, what to normalise by."""

    def __init__(self, layer: nn.BatchNorm2d, rule: Callable[..., tuple[Tensor, Tensor]], momentum: float):
        super().__init__()
        self.weight, self.bias, self.eps = layer.weight, layer.bias, layer.eps
        self.mean, self.var, self.rule, self.momentum = layer.running_mean, layer.running_var, rule, momentum

    def forward(self, x: Tensor) -> Tensor:
        mean, var = self.rule(x, self.mean, self.var, self.training)
        y = (x - mean) / (var + self.eps).sqrt() * self.weight[:, None, None] + self.bias[:, None, None]
        if self.training:
            batch = batch_mean_and_variance(x)
            self.mean, self.var = (
                (1 - self.momentum) * old + self.momentum * new.detach()
                for old, new in zip((self.mean, self.var), batch, strict=True)
            )
        return y


def batch_mean_and_variance(x: Tensor) -> tuple[Tensor, Tensor]:
    channels = [x[:, channel].flatten() for channel in range(x.shape[1])]
    means = [values.sum() / len(values) for values in channels]
    variances = [((values - mean) ** 2).sum() / len(values) for values, mean in zip(channels, means, strict=True)]
    return torch.stack(means), torch.stack(variances)


def with_norms(net: nn.Module, rule: Callable[..., tuple[Tensor, Tensor]], momentum: float) -> nn.Module:
    """A copy of a network whose BatchNorms follow a rule, in evaluation mode."""
    net = copy.deepcopy(net).eval().requires_grad_(False)
    for part in list(net.modules()):
        for name, child in part.named_children():
            if isinstance(child, nn.BatchNorm2d):
                setattr(part, name, SlowNorm(child, rule, momentum).eval())
    return net


def learning(net: nn.Module) -> list[nn.Parameter]:
    found = [p for part in net.modules() if isinstance(part, SlowNorm) for p in (part.weight, part.bias)]
    return [p.requires_grad_(True) for p in found] + affine(net)


def robust(x: Tensor, mean: Tensor, var: Tensor, training: bool) -> tuple[Tensor, Tensor]:
    """RoTTA's: in a step the moving mean, moved by a twentieth; else as it stands."""
    if training:
        batch = batch_mean_and_variance(x)
        mean, var = 0.95 * mean + 0.05 * batch[0], 0.95 * var + 0.05 * batch[1]
    return mean[:, None, None], var[:, None, None]


def instance_aware(x: Tensor, mean: Tensor, var: Tensor, training: bool) -> tuple[Tensor, Tensor]:
    """NOTE's, image by image, around the batch's statistics in a step."""
    if training:
        mean, var = batch_mean_and_variance(x)
    places, means, variances = x.shape[2] * x.shape[3], [], []
    for image in x:
        values = image.flatten(1)
        if places == 1:
            means.append(mean)
            variances.append(var)
            continue
        own = values.sum(1) / places
        spread = ((values - own[:, None]) ** 2).sum(1) / (places - 1)
        for found, around, error, results in (
            (own, mean, (var / places).sqrt(), means),
            (spread, var, var * math.sqrt(2 / (places - 1)), variances),
        ):
            beyond = (found - around).abs() - 4 * error
            results.append(around + torch.where(beyond > 0, (found - around).sign() * beyond, 0 * beyond))
    return torch.stack(means)[:, :, None, None], torch.stack(variances)[:, :, None, None]


class SlowItem:
    def __init__(self, image: Tensor, uncertainty: float = 0.0):
        self.image, self.uncertainty, self.age = image, uncertainty, 0


def slow_rotta(
    model: ncttt.Branched, sizes: Sequence[int], capacity: int, every: int, lr: float
) -> Iterator[tuple[Tensor, int]]:
    """Logits of each batch, and how many images there are in the memory; steps come in the midst of a stream."""
    student, teacher = (with_norms(model.classifier, robust, 0.05) for _ in range(2))
    optimizer = torch.optim.Adam(learning(student), lr=lr)
    memory: dict[int, list[SlowItem]] = {}
    came = 0
    for batch in STREAM.split(list(sizes)):
        logits = logits_by(teacher, batch)
        for image, row in zip(batch, logits, strict=True):
            item, label = SlowItem(image, entropy(row).item() / math.log(len(row))), int(row.argmax())
            own, classes = memory.setdefault(label, []), len(row)
            room = True
            if len(own) >= capacity / classes:
                room = gives_way(own, item, capacity)
            elif sum(map(len, memory.values())) >= capacity:
                largest = max(map(len, memory.values()))
                room = gives_way([items for items in memory.values() if len(items) == largest], item, capacity)
            if room:
                own.append(item)
            for kept in all_items(memory):
                kept.age += 1
            came += 1
            if came % every == 0:
                rotta_step(student, teacher, optimizer, all_items(memory), capacity)
        yield logits, len(all_items(memory))


def all_items(memory: dict[int, list[SlowItem]]) -> list[SlowItem]:
    return [item for items in memory.values() for item in items]


def gives_way(items: list, new: SlowItem, capacity: int) -> bool:
    """Take out the item of one list, or of several, with the highest score, if it is higher than the new one's."""
    lists = items if items and isinstance(items[0], list) else [items]

    def score(item: SlowItem) -> float:
        return 1 / (1 + math.exp(-item.age / capacity)) + item.uncertainty

    worst = max((item for each in lists for item in each), key=score)
    if score(worst) <= score(new):
        return False
    for each in lists:
        if worst in each:
            each.remove(worst)
    return True


def rotta_step(
    student: nn.Module, teacher: nn.Module, optimizer: torch.optim.Optimizer, items: list[SlowItem], capacity: int
) -> None:
    kept = torch.stack([item.image for item in items])
    for net in (student, teacher):
        for part in net.modules():
            part.training = isinstance(part, SlowNorm)
    taught = [probabilities(row) for row in logits_by(teacher, kept)]
    losses = slow_cross_entropy(taught, logits_by(student, kept.roll(1, 3)))
    weights = [math.exp(-i.age / capacity) / (1 + math.exp(-i.age / capacity)) for i in items]
    optimizer.zero_grad()
    (sum(w * loss for w, loss in zip(weights, losses, strict=True)) / len(losses)).backward()  # type: ignore[union-attr]
    optimizer.step()
    student.eval()
    teacher.eval()
    follow(teacher, student, 0.1)


def check_rotta_equals_a_slow_one(architecture: str = "resnet", size: int = 12) -> None:
    """A balanced memory with ages, the teacher's word on it, statistics of both, and the teacher's prediction."""
    model = settled(ncttt.RoTTA(capacity=8, every=12, kept=0.9), architecture)
    sizes = [size] * (len(STREAM) // size)
    expected, kept = zip(*slow_rotta(model, sizes, 8, 12, lr=1e-2), strict=True)
    assert kept[-1] == 8, "the memory never was full, so the test tells little"
    with patch.object(rotta, "strong_views", lambda images: images.roll(1, 3)):
        ours = stream(model, list(STREAM.split(sizes)), lr=1e-2)
    torch.testing.assert_close(ours, torch.cat(expected), rtol=1e-5, atol=1e-6)
    first = logits_by(plain_source(model), STREAM[-size:])
    assert (ours[-size:] - first).abs().max() > 1e-3, "nothing was learned, so the test tells little"


@torch.no_grad()
def settled(method: ncttt.Method, architecture: str) -> ncttt.Branched:
    """A model that with its own statistics, which are nearly those of the stream, tells all classes apart."""
    model = confident(method, architecture)
    for layer in model.batch_norms():
        layer.momentum = 0.9
    model.train()(STREAM.double())
    logits = model.eval()(STREAM.double())
    linear = [part for part in model.modules() if isinstance(part, nn.Linear) and part.out_features == CLASSES][-1]
    scale = 3 / logits.std(0)
    linear.weight.mul_(scale[:, None])
    linear.bias.sub_(logits.mean(0)).mul_(scale)
    return model


def plain_source(model: ncttt.Branched) -> nn.Module:
    return copy.deepcopy(model.classifier).eval().requires_grad_(False)


def slow_note(
    model: ncttt.Branched, sizes: Sequence[int], capacity: int, every: int, lr: float, draws: torch.Generator
) -> Iterator[tuple[Tensor, dict[int, int]]]:
    """Logits of each batch, and how many images of each class the memory holds."""
    net = with_norms(model.classifier, instance_aware, 0.01)
    optimizer = torch.optim.Adam(learning(net), lr=lr)
    slots: list[tuple[int, Tensor]] = []
    seen: dict[int, int] = {}
    came = 0
    for batch in STREAM.split(list(sizes)):
        logits = logits_by(net, batch)
        for image, row, (chance, choice) in zip(
            batch, logits, torch.rand(len(batch), 2, generator=draws).tolist(), strict=True
        ):
            label = int(row.argmax())
            seen[label] = seen.get(label, 0) + 1
            held = [mine for mine, _ in slots]
            if len(slots) < capacity:
                slots.append((label, image))
            else:
                most = max(held.count(mine) for mine in held)
                rivals = [number for number, mine in enumerate(held) if held.count(mine) == most]
                if held.count(label) == most:
                    rivals = (
                        [number for number in rivals if held[number] == label] if chance < most / seen[label] else []
                    )
                if rivals:
                    slots[rivals[int(choice * len(rivals))]] = (label, image)
            came += 1
            if came % every == 0:
                for part in net.modules():
                    part.training = isinstance(part, SlowNorm)
                kept = logits_by(net, torch.stack([image for _, image in slots]))
                optimizer.zero_grad()
                (sum(entropy(row) for row in kept) / len(kept)).backward()  # type: ignore[union-attr]
                optimizer.step()
                net.eval()
        yield logits.detach(), {label: [mine for mine, _ in slots].count(label) for label in seen}


def check_note_equals_a_slow_one(architecture: str = "resnet", size: int = 12) -> None:
    """A balanced reservoir, its entropy, instance-aware statistics around the memory's, and around those they move."""
    model = settled(ncttt.NOTE(capacity=8, every=12), architecture)
    sizes = [size] * (len(STREAM) // size)
    one, other = (torch.Generator().manual_seed(5) for _ in range(2))
    expected, held = zip(*slow_note(model, sizes, 8, 12, 1e-2, one), strict=True)
    assert sum(held[-1].values()) == 8, "the memory never was full, so the test tells little"
    assert len(held[-1]) > 2, "the images are of too few classes, so the test tells little"
    with patch.object(shared_memory, "own_generator", lambda: other):
        ours = stream(model, list(STREAM.split(sizes)), lr=1e-2)
    torch.testing.assert_close(ours, torch.cat(expected), rtol=1e-5, atol=1e-6)
    still = stream(model, list(STREAM.split(sizes)), lr=0.0)
    assert (ours[-size:] - still[-size:]).abs().max() > 1e-3, "nothing was learned, so the test tells little"


def check_note_s_loss() -> None:
    """Averaged over images, summed over classes: before its step it is the entropy of the memory, here of one batch."""
    adapter = ncttt.Adapter(settled(ncttt.NOTE(capacity=12, every=12), "vgg"), protocol="online")
    adapter(BATCHES[0].double())
    adapter(BATCHES[1].double())
    net = with_norms(adapter.model.classifier, instance_aware, 0.0)
    net.load_state_dict(settled(ncttt.NOTE(), "vgg").classifier.state_dict(), strict=False)
    for part in net.modules():
        part.training = isinstance(part, SlowNorm)
    rows = logits_by(net, BATCHES[0])
    expected = sum(entropy(row).item() for row in rows) / len(rows)
    assert abs(adapter.trace.losses[0] - expected) < 1e-6, f"expected {expected}; found {adapter.trace.losses[0]}"
