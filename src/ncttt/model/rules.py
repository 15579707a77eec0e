"""What a policy does in one BatchNorm layer: the moments to normalise by, and where they move the layer's buffers."""

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ncttt.model.moments import (
    Moments,
    batch_moments,
    blended,
    buffer_moments,
    image_moments,
    mixture,
    pooled,
    shrunk,
    values_of,
)
from ncttt.model.policies import Policy, batch_share, looking, parse
from ncttt.model.windows import Window


class Moves(dict[Tensor, Tensor]):
    """Where passes would move buffers: to what value each of them."""

    def now(self, buffer: Tensor) -> Tensor:
        """The value of a buffer, moved or not."""
        return self.get(buffer, buffer)

    @torch.no_grad()
    def keep(self) -> None:
        """Move the buffers, in place."""
        for buffer, value in self.items():
            buffer.copy_(value)
        self.clear()


class Rule:
    """What a policy does in a layer."""

    def __init__(self, policy: Policy, windows: dict[_BatchNorm, nn.Module]):
        self.kind, self.numbers = parse(policy)
        self.active = batch_share(policy) > 0
        # In training mode PyTorch normalises by the batch; without tracking it leaves the buffers alone.
        self.trains = self.kind in ("batch", "running") or (self.kind == "blend" and self.numbers[0] == 1)
        self.momentum = batch_share(policy) if self.kind == "running" else None
        self.moves = Moves()
        self._policy, self._windows = policy, windows

    def aside(self) -> "Rule":
        """The same statistics, for passes that move nothing."""
        return Rule(looking(self._policy), self._windows)

    def moments(self, layer: _BatchNorm, features: Tensor) -> Moments | None:
        """The moments to normalise features by; None for those that the layer's own mode takes."""
        if self.trains or not self.active:
            return None
        source = buffer_moments(layer, features)
        exact = features.to(source[0].dtype)
        if self.kind == "stream":
            return self._moved(layer, exact)
        if self.kind == "window":
            return self._pooled(layer, exact)
        if self.kind == "instance":
            return self._of_each_image(source, exact)
        share = batch_share(self._policy, len(features))
        return blended(source, batch_moments(exact), share) if values_of(features) > 1 else None

    def _of_each_image(self, source: Moments, features: Tensor) -> Moments | None:
        k, share = self.numbers
        if share and values_of(features) > 1:
            source = blended(source, batch_moments(features), share)
        if values_of(features[:1]) > 1:
            return shrunk(source, features, k)
        return source if share else None

    def _moved(self, layer: _BatchNorm, features: Tensor) -> Moments:
        share = batch_share(self._policy, len(features))
        moments = mixture(buffer_moments(layer, features, self.moves.now), batch_moments(features), share)
        self._move(layer, moments)
        return moments

    def _pooled(self, layer: _BatchNorm, features: Tensor) -> Moments:
        window = self._windows.get(layer) or Window(layer, int(self.numbers[0]))
        assert isinstance(window, Window)
        shape = [-1, features.shape[1]] + [1] * (features.ndim - 2)
        size = max(len(window.means), len(features))
        last = []
        for buffer, moment in zip((window.means, window.variances), image_moments(features), strict=True):
            last.append(torch.cat([self.moves.now(buffer).view(shape), moment])[-size:])
            self.moves[buffer] = last[-1][-len(buffer) :].detach().flatten(1)
        moments = pooled(*last)
        self._move(layer, moments)
        return moments

    def _move(self, layer: _BatchNorm, moments: Moments) -> None:
        assert layer.running_mean is not None
        assert layer.running_var is not None
        mean, var = (moment.detach().flatten() for moment in moments)
        self.moves |= {layer.running_mean: mean, layer.running_var: var}
