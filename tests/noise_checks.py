"""Checks of NC-TTT's own promises, written so that planted faults make them fail; see `test_faults.py`."""

import torch
from torch import Tensor, distributions
from torch.nn import functional as F

import ncttt
from ncttt import noise
from ncttt.testing.cases import Case, attached, images

PLAIN = {"scaling": "none", "conditional": False, "discriminator_norm": True, "hidden": 32}


def views_seen(method: ncttt.NCTTT, count: int = 64) -> tuple[Tensor, Tensor, ncttt.Branched]:
    """Noise `(2 * views, B, P, dim)` that reached the discriminator for a batch of one image repeated, and the loss."""
    model = attached("resnet", method, layer="layer3").train()
    model.classifier.eval()
    batch = images(1).expand(count, -1, -1, -1)
    logits, features = model.forward_with_features(batch)
    head = model.branch.heads[0]
    seen = []
    handle = head.discriminator.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach()))
    torch.manual_seed(1)
    loss = method.training_loss(model, batch, features, logits)
    handle.remove()
    projected = head.project(features).detach()
    return torch.cat(seen).view(2 * method.views, *projected.shape) - projected, loss.detach(), model


def check_noise_is_independent() -> None:
    for head in ("pixel", "flat"):
        seen, _, _ = views_seen(ncttt.NCTTT(head=head, views=2, **PLAIN))
        vectors = seen.flatten(0, 2)
        distance = torch.cdist(vectors, vectors) + torch.eye(len(vectors))
        assert distance.min() > 1e-3, "two samples share their noise"


def check_noise_has_its_scale() -> None:
    seen, _, _ = views_seen(ncttt.NCTTT(head="pixel", sigma_in=0.2, sigma_out=0.5, views=2, **PLAIN))
    inside, outside = seen.chunk(2)
    assert abs(inside.std() - 0.2) < 0.01
    assert abs(outside.std() - 0.5) < 0.02


def check_loss_equals_a_slow_one() -> None:
    """Eq. 8 sample by sample, labels by torch.distributions, one BatchNorm pass over in- and out-views together."""
    method = ncttt.NCTTT(head="pixel", sigma_in=0.2, sigma_out=0.5, views=2, **PLAIN)
    seen, loss, model = views_seen(method, count=8)
    head = model.branch.heads[0]
    with torch.no_grad():
        projected = head.project(model.features(images(1).expand(8, -1, -1, -1)))
        rows = (projected + seen).reshape(-1, seen.shape[-1])
        linear, norm, _, last = head.discriminator
        hidden = linear(rows)
        hidden = (hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + norm.eps).sqrt() * norm.weight + norm.bias
        logits = last(torch.where(hidden > 0, hidden, 0.2 * hidden)).flatten()
    total = 0.0
    for vector, logit in zip(seen.reshape(-1, seen.shape[-1]).double(), logits.double(), strict=True):
        inside, outside = (distributions.Normal(0.0, s).log_prob(vector).sum().exp() for s in (0.2, 0.5))
        label = inside / (inside + outside)
        probability = torch.sigmoid(logit)
        total -= (label * probability.log() + (1 - label) * (1 - probability).log()).item()
    assert abs(total / len(logits) - loss.item()) < 1e-4


def check_discriminator_learns_the_right_side() -> None:
    method = ncttt.NCTTT(head="pixel", sigma_in=0.1, sigma_out=3.0, **PLAIN)
    _, _, model = views_seen(method)
    logits, features = (t.detach() for t in model.forward_with_features(images(32)))
    optimizer = torch.optim.Adam(model.branch.parameters(), lr=1e-2)
    torch.manual_seed(0)
    for _ in range(150):
        optimizer.zero_grad()
        method.training_loss(model, images(32), features, logits).backward()
        optimizer.step()
    model.eval()
    head = model.branch.heads[0]
    quiet = head.project(features)
    loud = quiet + 3 * torch.randn_like(quiet)
    near, far = (head.discriminate(z[None], None).sigmoid().mean() for z in (quiet, loud))
    assert near > 0.8
    assert far < 0.3


def check_head_uses_source_statistics() -> None:
    """With source statistics in the classifier too, nothing couples the images of a batch."""
    for scaling in ("standardize", "whiten"):
        method = ncttt.NCTTT(scaling=scaling, discriminator_norm=True, norm="source")
        adapter = Case("resnet", method).adapter()
        together = adapter.shift(images(6))
        alone = torch.cat([adapter.shift(image[None]) for image in images(6)])
        assert torch.allclose(together, alone, atol=1e-5)


def check_adaptation_loss_is_equation_nine() -> None:
    for head in ("pixel", "flat"):
        method = ncttt.NCTTT(head=head, conditional=True, entropy=0, contrast=1)
        model = attached("resnet", method)
        loss, score, *_ = method.adaptation_loss(model, images(5))
        logits, features = model.forward_with_features(images(5))
        part = model.branch.heads[0]
        rows = part.project(features)
        joined = torch.cat([rows, logits.softmax(1)[:, None, :].expand(-1, rows.shape[1], -1)], dim=-1)
        judged = part.discriminator(joined.flatten(0, 1)).view(5, -1)
        assert torch.allclose(loss, -F.logsigmoid(judged).mean(), atol=1e-6)
        assert torch.allclose(score, judged.sigmoid().mean(1), atol=1e-6)
        assert torch.allclose(loss, noise.in_distribution_loss(judged), atol=1e-6)
