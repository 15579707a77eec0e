"""The methods of streams against slow and obvious versions of them; planted faults make these checks fail."""

import copy
import math
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

import ncttt
from ncttt.methods import memo, roid
from ncttt.testing.cases import attached, images, make_confident

BATCHES = [images(12, seed) for seed in range(5)]


def confident(method: ncttt.Method, architecture: str = "resnet", spread: float = 2.0) -> ncttt.Branched:
    """A small model that is sure of some images and not of others, calibrated, in double precision."""
    model = attached(architecture, method)
    make_confident(model, spread)
    model = model.double()
    model.calibrate([images(40, seed=9).double()])
    return model


def stream(model: ncttt.Branched, batches: list[Tensor] = BATCHES, **settings: Any) -> Tensor:
    """Logits of all batches by an online adapter."""
    adapter = ncttt.Adapter(model, protocol="online", **settings)
    return torch.cat([adapter(batch.double()) for batch in batches])


def plain_network(model: ncttt.Branched) -> nn.Module:
    """A copy of the classifier whose BatchNorms normalise by the batch, by PyTorch's own means alone."""
    net = copy.deepcopy(model.classifier).eval()
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.track_running_stats, part.running_mean, part.running_var = False, None, None
    return net.requires_grad_(False)


def normalised(batch: Tensor) -> Tensor:
    """As `attached` makes its models."""
    return (batch.double() - torch.tensor([0.5, 0.4, 0.3]).double()[:, None, None]) / torch.tensor(0.2).double()


def logits_by(net: nn.Module, batch: Tensor) -> Tensor:
    """Logits of a plain network, which may come with other things."""
    output = net(normalised(batch))
    return output if isinstance(output, Tensor) else output[0]


def affine(net: nn.Module) -> list[nn.Parameter]:
    """Scale and shift of normalisation layers, made to learn."""
    kinds = (nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)
    found = [p for part in net.modules() if isinstance(part, kinds) for p in (part.weight, part.bias)]
    return [parameter.requires_grad_(True) for parameter in found]


def probabilities(row: Tensor) -> Tensor:
    powers = [value.exp() for value in row]
    return torch.stack([power / sum(powers) for power in powers])


def entropy(row: Tensor) -> Tensor:
    return -sum(torch.xlogy(p, p) for p in probabilities(row))  # type: ignore[return-value]


def cosine(one: list[float], other: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def slow_fisher(model: ncttt.Branched, batch: Tensor) -> list[Tensor]:
    """Squares of the gradient for the model's own labels, of one group of up to 64 images."""
    net = plain_network(model)
    parameters = affine(net)
    logits = logits_by(net, batch)
    loss = -sum(probabilities(row)[int(row.argmax())].log() for row in logits) / len(batch)
    return [gradient**2 for gradient in torch.autograd.grad(loss, parameters)]  # type: ignore[arg-type]


def slow_eta(
    model: ncttt.Branched, margin: float, redundancy: float, lr: float, fisher: list[Tensor] | None = None
) -> Iterator[tuple[Tensor, int, int]]:
    """Logits of each batch before its step, of how many images it learned, and how many certain ones were not new."""
    net = plain_network(model)
    parameters = affine(net)
    source = [parameter.detach().clone() for parameter in parameters]
    optimizer = torch.optim.Adam(parameters, lr=lr)
    mean: list[float] | None = None
    for batch in BATCHES:
        logits = logits_by(net, batch)
        limit, losses, learned, known = margin * math.log(len(logits[0])), [], [], 0
        for row in logits:
            value, prediction = entropy(row), probabilities(row).tolist()
            if value.item() >= limit:
                continue
            if mean is not None and cosine(prediction, mean) >= redundancy:
                known += 1
                continue
            losses.append(math.exp(limit - value.item()) * value)
            learned.append(prediction)
        yield logits.detach(), len(learned), known
        if not learned:
            continue
        loss = sum(losses) / len(losses)
        for weight, now, before in zip(fisher or [], parameters, source, strict=False):
            loss = loss + (weight * (now - before) ** 2).sum()
        new = [sum(column) / len(learned) for column in zip(*learned, strict=True)]
        mean = new if mean is None else [0.9 * old + 0.1 * each for old, each in zip(mean, new, strict=True)]
        optimizer.zero_grad()
        loss.backward()  # type: ignore[union-attr]
        optimizer.step()


def check_eta_equals_a_slow_one() -> None:
    """Certain, new images alone count, by weights; some batches teach much, others little."""
    model = confident(ncttt.ETA(redundancy=0.6))
    logits, learned, known = zip(*slow_eta(model, 0.4, 0.6, lr=1e-2), strict=True)
    assert min(learned) > 0, "a batch taught nothing, so the test tells little"
    assert max(learned) < len(BATCHES[0]), "no image was uncertain, so the test tells little"
    assert max(known) > 0, "every certain image was new, so the test tells little"
    torch.testing.assert_close(stream(model, lr=1e-2), torch.cat(logits))


def check_domains_are_independent(method: ncttt.Method) -> None:
    """What came before `new_domain()` leaves nothing behind: the stream then goes on as a new one would."""
    model = confident(method)
    adapter = ncttt.Adapter(model, protocol="online", lr=1e-2)
    for batch in BATCHES[:3]:
        adapter(batch.double())
    adapter.new_domain()
    after = torch.cat([adapter(batch.double()) for batch in BATCHES[3:]])
    torch.testing.assert_close(after, stream(model, BATCHES[3:], lr=1e-2), rtol=0, atol=0)


def slow_sar(model: ncttt.Branched, names: set[str], lr: float, rho: float) -> Iterator[tuple[Tensor, float | None]]:
    """Logits of each batch before its step, and the mean loss as a share of ln C, none where nothing was learned."""
    net = plain_network(model)
    parameters = [p.requires_grad_(True) for name, p in net.named_parameters() if name in names]
    speeds = [torch.zeros_like(parameter) for parameter in parameters]
    mean: float | None = None
    for batch in BATCHES:
        logits = logits_by(net, batch)
        limit = 0.4 * math.log(len(logits[0]))
        values = [entropy(row) for row in logits]
        certain = [place for place, value in enumerate(values) if value.item() < limit]
        gradients = torch.autograd.grad(sum(values[place] for place in certain) / len(certain), parameters)  # type: ignore[arg-type]
        length = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
        before = [parameter.detach().clone() for parameter in parameters]
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter += rho * gradient / length
        rows = logits_by(net, batch)
        values = [value for value in (entropy(rows[place]) for place in certain) if value.item() < limit]
        loss = sum(values) / len(values)
        share = float(loss) / math.log(len(logits[0]))
        mean = share if mean is None else 0.9 * mean + 0.1 * share
        yield logits.detach(), mean
        gradients = torch.autograd.grad(loss, parameters)  # type: ignore[arg-type]
        with torch.no_grad():
            for place, gradient in enumerate(gradients):
                speeds[place] = 0.9 * speeds[place] + gradient
                parameters[place].copy_(before[place] - lr * speeds[place])


def check_sar_equals_a_slow_one(architecture: str = "resnet") -> None:
    """The gradient is that of the moved weights, and the moving mean that of its loss."""
    method = ncttt.SAR(rho=0.03, recovery=0.0, norm="source" if architecture == "vit" else "batch")
    model = confident(method, architecture, spread=3.0)
    adapter = ncttt.Adapter(model, protocol="online")
    for batch, (logits, mean) in zip(BATCHES, slow_sar(model, set(method.parameters(model)), 1e-2, 0.03), strict=True):
        torch.testing.assert_close(adapter(batch.double()), logits)
        assert abs(adapter.model.memory.mean.item() - mean) < 1e-10, "the moving mean of the loss differs"


def check_sar_recovers_by_the_number_of_classes() -> None:
    """It begins again when the mean loss is below its share of ln C, not of ln 1000, and then starts from nothing."""
    _, low = next(slow_sar(confident(ncttt.SAR()), set(ncttt.SAR().parameters(confident(ncttt.SAR()))), 1e-2, 0.05))
    assert low is not None
    for share, resets in ((low * 1.01, True), (low * 0.99, False)):
        adapter = ncttt.Adapter(confident(ncttt.SAR()), ncttt.SAR(recovery=share), protocol="online")
        adapter(BATCHES[0].double())
        assert adapter.trace.reset == resets, f"reset is {adapter.trace.reset} at {share / low:g} times the mean loss"
        assert (adapter.model.memory.mean.item() < 0) == resets, "the moving mean survived the reset"


def slow_shuffle(image: Tensor, order: list[int], patches: int) -> Tensor:
    """Patch number `order[i]` goes to place i; rows of patches first."""
    shuffled, height, width = image.clone(), image.shape[1] // patches, image.shape[2] // patches
    for place, origin in enumerate(order):
        (top, left), (from_top, from_left) = divmod(place, patches), divmod(origin, patches)
        part = image[:, from_top * height : (from_top + 1) * height, from_left * width : (from_left + 1) * width]
        shuffled[:, top * height : (top + 1) * height, left * width : (left + 1) * width] = part
    return shuffled


def slow_deyo(
    model: ncttt.Branched, orders: list[list[list[int]]], lr: float, least: float
) -> Iterator[tuple[Tensor, int, int]]:
    """Logits of each batch before its step, how many images were certain, and how many of them counted."""
    net = plain_network(model)
    parameters = affine(net)
    speeds = [torch.zeros_like(parameter) for parameter in parameters]
    for batch, drawn in zip(BATCHES, orders, strict=True):
        logits = logits_by(net, batch)
        highest = math.log(len(logits[0]))
        certain = [place for place, row in enumerate(logits) if entropy(row).item() < 0.5 * highest]
        shuffled = torch.stack([slow_shuffle(batch[place], drawn[n], 4) for n, place in enumerate(certain)])
        with torch.no_grad():
            others = logits_by(net, shuffled)
        losses = []
        for place, other in zip(certain, others, strict=True):
            predicted, value = int(logits[place].argmax()), entropy(logits[place])
            drop = float(probabilities(logits[place])[predicted]) - float(probabilities(other)[predicted])
            if drop > least:
                losses.append((math.exp(0.4 * highest - value.item()) + math.exp(drop)) * value)
        yield logits.detach(), len(certain), len(losses)
        if not losses:
            continue
        gradients = torch.autograd.grad(sum(losses) / len(losses), parameters)  # type: ignore[arg-type]
        with torch.no_grad():
            for place, gradient in enumerate(gradients):
                speeds[place] = 0.9 * speeds[place] + gradient
                parameters[place] -= lr * speeds[place]


def drawn_orders(adapter: ncttt.Adapter) -> list[list[list[int]]]:
    """The orders of patches that each batch gets, which depend on the seeds of the stream alone."""
    state = copy.deepcopy(adapter._state)
    orders = []
    for batch in BATCHES:
        generator = torch.Generator().manual_seed(state.next_seed())
        orders.append(torch.rand(len(batch), 16, generator=generator).argsort(1).tolist())
    return orders


def check_deyo_equals_a_slow_one(architecture: str = "resnet") -> None:
    """Certain images alone count, and of these those that shuffled patches make less certain."""
    transformer = architecture == "vit"  # to which the order of patches of noise means little
    method = ncttt.DeYO(norm="source" if transformer else "batch", least_drop=0.0 if transformer else 0.2)
    model = confident(method, architecture, spread=3.0)
    adapter = ncttt.Adapter(model, protocol="online", lr=1e-2)
    orders = drawn_orders(adapter)
    logits, certain, counted = zip(*slow_deyo(model, orders, 1e-2, method.least_drop), strict=True)
    assert 0 < sum(counted) < sum(certain) < sum(map(len, BATCHES)), "no image was left out, so the test tells little"
    torch.testing.assert_close(torch.cat([adapter(batch.double()) for batch in BATCHES]), torch.cat(logits))


def slow_roid(model: ncttt.Branched, lr: float, batches: list[Tensor]) -> Iterator[tuple[Tensor, list[float]]]:
    """Predictions of each batch before its step, corrected, and the weights of its images; views are mirrored."""
    net = plain_network(model)
    parameters = affine(net)
    source = [parameter.detach().clone() for parameter in parameters]
    optimizer = torch.optim.Adam(parameters, lr=lr)
    mean: list[float] = []
    for batch in batches:
        logits = logits_by(net, batch)
        classes, each = len(logits[0]), [probabilities(row) for row in logits]
        mean = mean or [1 / classes] * classes
        diversity = stretched([1 - cosine(p.tolist(), mean) for p in each])
        certainty = stretched([-entropy(row).item() for row in logits])
        middle = sum(diversity) / len(diversity)
        weights = [0 if d < middle else math.exp(3 * d * c) for d, c in zip(diversity, certainty, strict=True)]
        shares = [sum(float(p[k]) for p in each) / len(each) for k in range(classes)]
        mean = [0.9 * old + 0.1 * new for old, new in zip(mean, shares, strict=True)]
        smooth = max(1 / len(batch), 1 / classes) / max(shares)
        prior = [(share + smooth) / (1 + smooth * classes) for share in shares]
        corrected = torch.stack([torch.stack([p[k] * prior[k] for k in range(classes)]) for p in each]).detach()
        yield corrected / corrected.sum(1, keepdim=True), weights
        places = [place for place, weight in enumerate(weights) if weight]
        views = logits_by(net, batch[places].flip(3))
        loss = torch.zeros(())
        for view, place in zip(views, places, strict=True):
            clipped = [p.clamp(max=0.99) for p in each[place]]
            ratio = -sum(p * torch.log(p / (1 - p) + 1e-5) for p in clipped)
            agreement = (cross_entropy(view, logits[place]) + cross_entropy(logits[place], view)) / 2
            loss = loss + weights[place] * (ratio + agreement) / len(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for parameter, origin in zip(parameters, source, strict=True):
                parameter.copy_(0.99 * parameter + 0.01 * origin)


def stretched(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def cross_entropy(target: Tensor, predicted: Tensor) -> Tensor:
    pairs = zip(probabilities(target), probabilities(predicted), strict=True)
    return -sum(p * q.log() for p, q in pairs)  # type: ignore[return-value]


def check_roid_equals_a_slow_one(architecture: str = "resnet", size: int = 12) -> None:
    """Weights, loss, consistency, anchor and correction, with mirrored images for views."""
    batches = [batch[:size] for batch in BATCHES]
    model = confident(ncttt.ROID(norm="source" if architecture == "vit" else "batch"), architecture)
    with patch.object(roid, "VIEWS", lambda images: images.flip(3)):
        ours = stream(model, batches, lr=1e-2).softmax(1)
    predictions, weights = zip(*slow_roid(model, 1e-2, batches), strict=True)
    counted = [weight for each in weights for weight in each if weight]
    assert size == 1 or len(counted) < size * len(batches), "no image was left out, so the test tells little"
    torch.testing.assert_close(ours, torch.cat(predictions))


def check_correction_is_on_probabilities() -> None:
    """Two images by hand: probabilities times the smoothed shares, so a class that is common gets likelier."""
    likely = torch.tensor([[0.9, 0.1], [0.5, 0.5]]).double()
    shares, smooth = [0.7, 0.3], 0.5 / 0.7
    prior = [(share + smooth) / (1 + 2 * smooth) for share in shares]
    expected = torch.tensor([[p * q for p, q in zip(row, prior, strict=True)] for row in likely.tolist()]).double()
    expected = expected / expected.sum(1, keepdim=True)
    corrected = ncttt.ROID()._corrected(likely.log() - 3.0)  # negative logits, which a factor would turn round
    torch.testing.assert_close(corrected.softmax(1), expected)


def slow_t3a(model: ncttt.Branched, linear: nn.Linear, k: int) -> Iterator[Tensor]:
    """Logits of each batch: lists of supports for each class, sorted, cut, added up."""
    taken: list[Tensor] = []
    hook = linear.register_forward_pre_hook(lambda _, inputs: taken.append(inputs[0].detach()))
    supports: list[list[tuple[float, Tensor]]] = [[] for _ in range(linear.out_features)]

    def keep(features: Tensor, logits: Tensor) -> None:
        for row, scores in zip(features, logits, strict=True):
            supports[int(scores.argmax())].append((entropy(scores).item(), row / row.norm()))
        for place, own in enumerate(supports):
            supports[place] = sorted(own, key=lambda pair: pair[0])[:k]

    with torch.no_grad():
        keep(linear.weight, linear.weight @ linear.weight.T + linear.bias)
        for batch in BATCHES:
            logits = model(batch.double())
            keep(taken[-1], logits)
            centroids = [sum(row for _, row in own) if own else torch.zeros_like(taken[-1][0]) for own in supports]
            rows = [[float(z @ c) / (float(c.norm()) or 1.0) for c in centroids] for z in taken[-1]]  # type: ignore[union-attr]
            yield torch.tensor(rows).double()
    hook.remove()


def check_t3a_equals_a_slow_one(architecture: str = "resnet", k: int = 3) -> None:
    """Supports are gathered over the stream, the worst of a class leave it, the rest give the logits."""
    model = confident(ncttt.T3A(k=k), architecture)
    linear = [part for part in model.modules() if isinstance(part, nn.Linear) and part.out_features == 5][-1]
    expected = torch.cat(list(slow_t3a(model, linear, k)))
    torch.testing.assert_close(stream(model), expected, rtol=1e-5, atol=1e-5)


def mirrored_in_turn(views: Tensor) -> Tensor:
    """Every other view mirrored: what a test can say without random numbers."""
    return torch.where((torch.arange(len(views)) % 2 == 1)[:, None, None, None], views.flip(3), views)


def check_memo_equals_a_slow_one(count: int = 3) -> None:
    """One step of plain SGD on all weights, on the mean of entropies, then a forward of the images."""
    model = confident(ncttt.MEMO(norm="source", views=4))
    batch = images(count).double()
    ours = ncttt.Adapter(model, lr=0.1)
    with patch.object(memo, "augmix", mirrored_in_turn):
        logits = ours(batch)
    net = model.classifier
    losses = []
    for image in batch:
        views = [net(normalised(view[None]))[0] for view in (image, image.flip(2)) * 2]
        mean = sum(map(probabilities, views)) / 4
        losses.append(-sum(p * p.log() for p in mean))
    loss = sum(losses) / count
    assert abs(ours.trace.losses[0] - float(loss)) < 1e-9, "the loss differs"
    named = dict(net.named_parameters())
    gradients = torch.autograd.grad(loss, list(named.values()))  # type: ignore[arg-type]
    moved = {name: p - 0.1 * g for (name, p), g in zip(named.items(), gradients, strict=True)}
    expected = torch.func.functional_call(net, moved, (normalised(batch),))
    torch.testing.assert_close(logits, expected.detach())
    assert not torch.allclose(logits, model(batch)), "nothing has moved"
