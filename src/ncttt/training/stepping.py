"""One step of a training, a function of its number alone.

Every step seeds its own random numbers and takes its learning rate from its number, so that a training that is stopped
and resumed takes exactly the steps of one that was not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from ncttt.base.errors import InputError
from ncttt.base.parallel import Share, sharing
from ncttt.data import augment
from ncttt.model.branched import Branched
from ncttt.model.norm import batch_norms
from ncttt.training.joint import JointLoss, make_optimizers
from ncttt.training.processes import any_process, place, wrapped
from ncttt.training.recipe import Recipe
from ncttt.training.schedules import factor, highest_rate

LARGE = 1_000_003  # a prime that keeps (seed, step, rank) apart
LOOK_EVERY = {"cpu": 1}  # steps between looks at losses and signals; elsewhere looking makes the processor wait
LOOK_SELDOM = 50


class Stepper:
    """The joint loss, its optimizers, and how a batch moves them."""

    def __init__(self, model: Branched, recipe: Recipe, steps_per_epoch: int):
        self.model, self.recipe, self.steps_per_epoch = model, recipe, steps_per_epoch
        self.device, self.place = model.mean.device, place()
        self.augment = augmentation(recipe.augment)
        if recipe.precision != "float32" and self.device.type == "cpu":
            # Many processors do it far slower, and some libraries crash on it.
            raise InputError(f"precision={recipe.precision!r} is for GPUs; this model is on the cpu: use float32")
        if recipe.compile and recipe.synchronise:
            raise InputError("compile and synchronise do not go together; choose one")
        self.joint = JointLoss(model, recipe)
        self.only_branch = self.joint.only_branch
        self.common = Generator(self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=recipe.precision == "float16")
        self.losses: dict[int, Tensor] = {}

    def prepare(self) -> None:
        """Make the optimizers and wrap the loss, once it is settled which parameters learn."""
        lr = highest_rate(self.recipe, self.recipe.epochs * self.steps_per_epoch)
        self.short = lr < self.recipe.lr
        made = make_optimizers(self.model, self.recipe.but(lr=lr))
        self.optimizers, self.rates = [optimizer for optimizer, _ in made], [lr for _, lr in made]
        self.loss = wrapped(self.joint, self.device)

    def step(self, number: int, images: Tensor, labels: Tensor) -> Tensor:
        """Lower the loss on one batch; returns cross-entropy, auxiliary loss and accuracy."""
        share = self._seed(number)
        for optimizer, rate in zip(self.optimizers, self.rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * self._factor(number)
            optimizer.zero_grad(set_to_none=True)
        precision = getattr(torch, self.recipe.precision)
        mixed = torch.autocast(self.device.type, dtype=precision, enabled=precision != torch.float32)
        with sharing(share), mixed, self._averaging(number):
            loss, metrics = self.loss(self._prepared(number, images), labels)
        self._check_loss(number, loss)
        self.scaler.scale(loss).backward()
        self._clip()
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()
        return metrics

    def looks(self, done: int) -> bool:
        """Whether losses and signals are looked at when so many steps are done."""
        return done % LOOK_EVERY.get(self.device.type, LOOK_SELDOM) == 0

    def rate(self, number: int) -> float:
        """The first optimizer's learning rate at that step."""
        return self.rates[0] * self._factor(number)

    def check_weights(self) -> None:
        """Raise before weights that are not finite replace good ones on disk."""
        self._check_losses()
        if not all(bool(tensor.isfinite().all()) for tensor in self.model.state_dict().values()):
            raise InputError(f"the training has diverged: weights are not finite{_ADVICE}")

    @contextmanager
    def _averaging(self, number: int) -> Iterator[None]:
        """Let the running statistics of a short training be plain averages of its first steps.

        By momentum alone a hundredth of their initial values is left after 45 steps, which spoils predictions where
        features are small.
        """
        layers = batch_norms(self.model) if self.short else []
        momenta = {layer: layer.momentum for layer in layers if layer.momentum is not None}
        for layer, momentum in momenta.items():
            layer.momentum = max(momentum, 1 / (number + 1))
        try:
            yield
        finally:
            for layer, momentum in momenta.items():
                layer.momentum = momentum

    def _seed(self, number: int) -> Share:
        base = self.recipe.seed * LARGE + number
        torch.manual_seed((base * LARGE + self.place.rank) % 2**63)
        self.common.manual_seed(base % 2**63)
        return Share(self.common, self.place.rank, self.place.world, self.recipe.synchronise)

    def _prepared(self, number: int, images: Tensor) -> Tensor:
        """Augmented, and shrunk where the recipe begins with smaller images."""
        images, size = self.augment(images), self.recipe.shrink
        if size is None or self._done(number) >= self.recipe.shrink_until:
            return images
        # `area` takes every pixel into account, so that nothing aliases.
        return functional.interpolate(images, (size, size), mode="area")

    def _done(self, number: int) -> float:
        """The share of the training that is over in the middle of that step."""
        return (number + 0.5) / (self.recipe.epochs * self.steps_per_epoch)

    def _factor(self, number: int) -> float:
        return factor(self.recipe, self._done(number))

    def _clip(self) -> None:
        if self.recipe.clip is None:
            return
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)
        parameters = [p for optimizer in self.optimizers for group in optimizer.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(parameters, self.recipe.clip)

    def _check_loss(self, number: int, loss: Tensor) -> None:
        self.losses[number] = loss.detach()
        if self.looks(number + 1):
            self._check_losses()

    def _check_losses(self) -> None:
        """Raise in all processes if a loss of any was not finite since the last look."""
        seen, self.losses = self.losses, {}
        bad = {number: loss.item() for number, loss in seen.items() if not loss.isfinite()}
        for number, loss in bad.items():
            any_process(True, self.device)
            epoch = number // self.steps_per_epoch + 1
            raise InputError(f"the loss is {loss} at step {number + 1}, in epoch {epoch}{_ADVICE}")
        if any_process(False, self.device):
            raise InputError(f"the loss of another process is not finite{_ADVICE}")


def augmentation(name: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The augmentation that a recipe names, or the function that it holds."""
    if callable(name):
        return name
    return (lambda images: images) if name == "none" else getattr(augment, name)


_ADVICE = "; the last good checkpoint is kept; try a lower lr, or clip=1"
