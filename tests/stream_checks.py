"""The methods of streams against slow and obvious versions of them; planted faults make these checks fail."""

import copy
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import ncttt
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
    return (batch.double() - torch.tensor([0.5, 0.4, 0.3]).double()[:, None, None]) / 0.2


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
    return -sum(p * p.log() for p in probabilities(row))  # type: ignore[return-value]


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
