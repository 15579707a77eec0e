"""What a training is worth on images it does not learn from: accuracy, losses, and the health of the branch."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch.nn import functional as F

from ncttt.base.seeding import seeded
from ncttt.data import ImageSet, batches
from ncttt.model.branched import Branched
from ncttt.model.modes import evaluating


@torch.no_grad()
def held_out_metrics(model: Branched, data: ImageSet, batch_size: int, seed: int = 0) -> dict[str, float]:
    """Accuracy, cross-entropy, auxiliary loss and the health of the method's branch, as means over the images.

    The noise is seeded, so that two epochs, or two trainings, are compared on the same draws.
    """
    device, sums = model.mean.device, defaultdict(float)
    with evaluating(model), seeded(seed, device):
        for images, labels in batches(data, batch_size, device=device):
            logits, features = model.forward_with_features(images)
            metrics = {
                "accuracy": (logits.argmax(1) == labels).float().mean(),
                "cross_entropy": F.cross_entropy(logits, labels),
                "auxiliary": model.method.training_loss(model, images, features, logits),
                **model.method.health(model, images, features, logits),
            }
            for name, value in metrics.items():
                if value is not None:
                    sums[name] += float(value) * len(images)
    return {name: total / len(data) for name, total in sums.items()}
