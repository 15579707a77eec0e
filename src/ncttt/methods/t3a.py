"""T3A: the last layer's rows replaced by centroids of the test features that the model was most certain of.

Supports of a class are the rows of the last linear layer and the features of test images that it takes for that class,
of these the k of lowest entropy. With c_k the sum of the normalised supports of class k, the logit of features z is
z . c_k / |c_k|. Nothing has a gradient, and the network stays as it is.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ncttt.base.errors import InputError
from ncttt.methods.base import Method, Prediction
from ncttt.methods.shared import check_whole, entropies
from ncttt.model.branched import Branched
from ncttt.model.features import last_linear, penultimate_features


class Kept(NamedTuple):
    """Normalised features `(classes, k, d)` and their entropies `(classes, k)`, infinite where a place is free."""

    features: Tensor
    entropies: Tensor

    def with_others(self, features: Tensor, logits: Tensor) -> "Kept":
        """The k of lowest entropy for each class, of these and of features `(N, d)` with logits `(N, classes)`."""
        classes, k, width = self.features.shape
        own = logits.argmax(1) == torch.arange(classes, device=logits.device)[:, None]
        each = torch.cat([self.entropies, torch.where(own, entropies(logits), torch.inf)], dim=1)
        lowest, places = (part[:, :k] for part in each.sort(dim=1, stable=True))  # of equals the first that came
        # Places count through one class's supports and then the others; rows through the supports of all classes.
        before = torch.arange(classes, device=logits.device)[:, None] * k
        rows = torch.cat([self.features.view(-1, width), F.normalize(features, dim=1)])
        return Kept(rows[torch.where(places < k, before + places, classes * k + places - k)], lowest)

    def logits(self, features: Tensor) -> Tensor:
        """The logits `(N, classes)` of features `(N, d)`."""
        known = self.entropies.isfinite()[:, :, None]
        centroids = torch.where(known, self.features, 0).sum(1)
        return features @ F.normalize(centroids, dim=1).T


class Supports(nn.Module):
    """What is kept of a stream; at first the rows of the last layer."""

    features: Tensor
    entropies: Tensor

    def __init__(self, linear: nn.Linear, k: int):
        super().__init__()
        classes, width = linear.weight.shape
        empty = Kept(linear.weight.new_zeros(classes, k, width), linear.weight.new_full((classes, k), torch.inf))
        kept = empty.with_others(linear.weight, linear(linear.weight))
        self.register_buffer("features", kept.features)
        self.register_buffer("entropies", kept.entropies)


@dataclass(frozen=True, kw_only=True)
class T3A(Method):
    """Classes are centroids of features that come in; meant for a stream (`protocol="online"`), where they gather.

    `k`: how many supports each class keeps.
    """

    name: ClassVar[str] = "t3a"
    title: ClassVar[str] = "T3A"
    place: ClassVar[float] = 25

    k: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, k=1)

    @torch.no_grad()
    def memory(self, model: Branched) -> Supports:
        return Supports(last_linear(model), self.k)

    @torch.no_grad()
    def predict(self, model: Branched, images: Tensor) -> Prediction:
        memory = model.memory
        assert isinstance(memory, Supports)
        logits, features = penultimate_features(model, images)
        if features.shape[1] != memory.features.shape[2] or logits.shape[1] != len(memory.features):
            raise InputError(
                f"T3A took the last linear layer that {type(model.classifier).__name__} defines for the one that gives "
                "the logits, but another one runs last; make a model by ncttt.attach(net, None, method, example=images)"
            )
        kept = Kept(memory.features, memory.entropies).with_others(features, logits)
        return Prediction(kept.logits(features), seen=kept)

    def remember(self, model: Branched, images: Tensor, prediction: Prediction) -> None:
        memory = model.memory
        assert isinstance(memory, Supports)
        memory.features.copy_(prediction.seen.features)
        memory.entropies.copy_(prediction.seen.entropies)
