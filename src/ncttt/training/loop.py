"""The training loop: cross-entropy plus the method's auxiliary loss, resumable, in one process or many."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any
from warnings import warn

import torch

from ncttt.branched import Branched
from ncttt.data import ImageSet, batches
from ncttt.errors import InputError
from ncttt.randomness import seeded
from ncttt.recipe import Recipe
from ncttt.training.figures import Epoch
from ncttt.training.health import held_out_figures
from ncttt.training.joint import training_mode
from ncttt.training.processes import any_process, mean_of_all, place, share_of_batch, synchronised_batch_norms
from ncttt.training.run import CALIBRATION_BATCH, Progress, Run
from ncttt.training.signals import Request, listening
from ncttt.training.stepping import Stepper
from ncttt.training.watching import Observer, watcher


def train(
    model: Branched,
    data: ImageSet,
    recipe: Recipe | None = None,
    *,
    held_out: ImageSet | None = None,
    run: str | Path | None = None,
    resume: bool = False,
    observers: Sequence[Observer] | None = None,
    **settings: Any,
) -> list[Epoch]:
    """Train classifier and branch jointly, in place, and calibrate the method on `held_out` source images.

    Settings are those of `Recipe`, such as `epochs=30` or `branch="only"`, and change the given recipe. Held-out
    images, a part of the training set, are evaluated after every epoch. In a `run` folder everything is kept that is
    needed to `resume` after a kill, with the best and the last model. `observers` replace the progress display. The
    model's weights are laid out channels last, which is faster.
    """
    recipe = (recipe or Recipe()).but(**settings)
    for images in (data, held_out):
        _check_classes(model, images)
    folder = None if run is None else Run(run, writes=place().first)
    if resume and folder is None:
        raise InputError("resuming needs the folder that the training was begun in: run=...")
    observers = [watcher()] if observers is None else observers
    training = _Training(model, data, recipe, held_out, folder, observers if place().first else ())
    training.run(resume)
    return training.progress.history


class _Training:
    """One training: what it works on, and how far it has come."""

    def __init__(
        self,
        model: Branched,
        data: ImageSet,
        recipe: Recipe,
        held_out: ImageSet | None,
        folder: Run | None,
        observers: Sequence[Observer],
    ):
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model, self.data, self.recipe, self.held_out = model, data, recipe, held_out
        self.folder, self.observers, self.device = folder, observers, model.mean.device
        self.steps_per_epoch = len(data) // recipe.batch_size
        if not self.steps_per_epoch:
            raise InputError(f"nothing to train: {len(data)} images give no batch of {recipe.batch_size}")
        self.stepper = Stepper(model, recipe, self.steps_per_epoch)
        self.progress = Progress([])

    def run(self, resume: bool) -> None:
        """Train what is left, then calibrate and write the model."""
        if self.folder is not None:
            self.progress = self.folder.begin(self.model, self.recipe, self.data, resume) or self.progress
        with ExitStack() as stack:
            request = stack.enter_context(listening()) if self.folder else Request()
            stack.enter_context(seeded(self.recipe.seed, self.device))
            stack.enter_context(training_mode(self.model, self.stepper.only_branch))
            if self.recipe.synchronise:
                stack.enter_context(synchronised_batch_norms(self.model))
            self.stepper.prepare()
            if self.folder is not None and self.progress.begun:
                self.folder.restore(self.model, self.stepper.optimizers)
                self.stepper.scaler.load_state_dict(self.progress.scaler)
            self._tell_begin(stack)
            while len(self.progress.history) < self.recipe.epochs:
                self._epoch(len(self.progress.history), request)
        self._finish()

    def _tell_begin(self, stack: ExitStack) -> None:
        done = len(self.progress.history) * self.steps_per_epoch + self.progress.step
        for observer in self.observers:
            observer.begin(self.recipe.epochs * self.steps_per_epoch, self.recipe.epochs, done)
            stack.callback(observer.end)

    def _epoch(self, number: int, request: Request) -> None:
        progress, first = self.progress, number * self.steps_per_epoch
        sums, began, before = torch.tensor(progress.sums, device=self.device), monotonic(), progress.step
        for images, labels in self._batches(number):
            figures = self.stepper.step(first + progress.step, images, labels)
            sums += figures
            progress.step += 1
            for observer in self.observers:
                observer.step(first + progress.step, figures, self.recipe.batch_size)
            if self.folder is not None and any_process(request.signal is not None, self.device):
                progress.sums = tuple(sums.tolist())
                self._keep()
                request.obey()
        speed = (progress.step - before) * self.recipe.batch_size / (monotonic() - began)
        means = mean_of_all(sums / self.steps_per_epoch).tolist()
        rate = self.stepper.rate(first + progress.step - 1)
        self._end_epoch(Epoch(number + 1, *means, lr=rate, images_per_second=speed))

    def _batches(self, epoch: int) -> Any:
        here = place()
        left = batches(
            self.data,
            share_of_batch(self.recipe.batch_size),
            shuffle=True,
            seed=self.recipe.seed,
            epoch=epoch,
            workers=self.recipe.workers,
            device=self.device,
            drop_last=True,
            rank=here.rank,
            world=here.world,
        )
        return replace(left, order=left.order[self.progress.step :])

    def _end_epoch(self, epoch: Epoch) -> None:
        if self.held_out is not None and place().first:
            epoch = replace(epoch, held_out=held_out_figures(self.model, self.held_out, self.recipe.seed))
            if epoch.number in (self.recipe.epochs // 2, self.recipe.epochs) and self.model.branch is not None:
                for ailment in self.model.method.ailments(epoch.held_out):
                    warn(f"after epoch {epoch.number}, {ailment}", stacklevel=5)
        self.progress = Progress([*self.progress.history, epoch])
        self._keep()
        for observer in self.observers:
            observer.epoch(epoch)

    def _keep(self) -> None:
        self.stepper.check_weights()
        self.progress.scaler = self.stepper.scaler.state_dict()
        if self.folder is not None:
            self.folder.keep(self.model, self.stepper.optimizers, self.progress)

    def _finish(self) -> None:
        if self.held_out is not None:
            self.model.method.calibrate(self.model, batches(self.held_out, CALIBRATION_BATCH, device=self.device))
        if self.folder is not None:
            self.folder.finish(self.model, self.held_out, self.progress.history)


def _check_classes(model: Branched, data: ImageSet | None) -> None:
    if not isinstance(model, Branched) or model.input_shape is None:
        raise InputError(f"train takes a model made by ncttt.attach; found a {type(model).__name__}")
    if data is None:
        return
    if not isinstance(data, ImageSet):
        raise InputError(f"train takes an ImageSet(images, labels, classes); found a {type(data).__name__}")
    with torch.no_grad():
        classes = model.eval()(torch.zeros(1, *model.input_shape).to(model.mean)).shape[1]
    if classes != len(data.classes):
        raise InputError(f"the classifier has {classes} classes, but {data.name} has {len(data.classes)}")
