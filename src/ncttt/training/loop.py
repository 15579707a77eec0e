"""The training loop: cross-entropy plus the method's auxiliary loss, resumable, in one process or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from ncttt.base.devices import fast_kernels
from ncttt.base.errors import InputError
from ncttt.base.seeding import seeded
from ncttt.base.signals import Request, listening
from ncttt.base.warning import warn_caller
from ncttt.data import Batches, LazyImages, LoadedBatches
from ncttt.model.branched import Branched
from ncttt.training.epoch import Epoch, held_out_metrics
from ncttt.training.given import Given, LoadedSet, given_batches, given_set
from ncttt.training.joint import compiled, training_mode
from ncttt.training.processes import any_process, mean_of_all, place, share_of_batch, synchronised_batch_norms
from ncttt.training.recipe import Recipe
from ncttt.training.run import Progress, Run
from ncttt.training.stepping import Stepper
from ncttt.training.watching import Display, Observer
from ncttt.zoo.checkpoint import describe


def train(
    model: Branched,
    data: Any,
    recipe: Recipe | None = None,
    *,
    held_out: Any = None,
    run: str | Path | None = None,
    resume: bool = False,
    observers: Sequence[Observer] | None = None,
    about: Mapping[str, Any] | None = None,
    **settings: Any,
) -> list[Epoch]:
    """Train classifier and branch jointly, in place, and calibrate the model on `held_out` source images.

    Data and held-out images are each an `ImageSet`, a map-style Dataset of PyTorch, read as `as_image_set` says, or a
    DataLoader, which has its own batch size and order. Labels are needed.

    Settings are those of `Recipe`, such as `epochs=30` or `branch="only"`, and change the given recipe. Held-out
    images, a part of the training set, are evaluated after every epoch; without them nobody watches whether the branch
    learns, and the model is not calibrated. In a `run` folder everything is kept that is needed to `resume` after a
    kill, with the best and the last model; `about` is kept with its configuration. `observers` replace the progress
    display. The model's weights are laid out channels last, which is faster.
    """
    recipe = (recipe or Recipe()).but(**settings)
    data = given_set(model, data)
    held_out = None if held_out is None else given_set(model, held_out, like=data)
    if isinstance(data, LoadedSet):
        recipe = _with_batches_of(data, recipe, settings)
    if held_out is not None and held_out.classes != data.classes:
        raise InputError(f"the classes of {held_out.name} are not those of {data.name}")
    model.classes = data.classes
    evaluated = (data if held_out is None else held_out).images  # those to learn from may be larger than the model's
    if isinstance(evaluated, LazyImages):
        model.resize = evaluated.resize
    model.forget()
    if resume and run is None:
        raise InputError("resuming needs the folder that the training was begun in: run=...")
    observers = [Display()] if observers is None else observers
    folder = None if run is None else Run(run)
    if resume and folder is not None:
        recipe = folder.as_begun(recipe)
    training = _Training(model, data, recipe, held_out, folder, observers)
    training.run(resume, {} if about is None else dict(about))
    return training.progress.history


def _with_batches_of(data: LoadedSet, recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    size = data.loader.batch_size or recipe.batch_size
    if settings.get("batch_size", size) != size:
        raise InputError(f"the DataLoader makes batches of {size}; found batch_size={settings['batch_size']}")
    return recipe.but(batch_size=size)


class _Training:
    """One training: what it works on, and how far it has come."""

    def __init__(
        self,
        model: Branched,
        data: Given,
        recipe: Recipe,
        held_out: Given | None,
        folder: Run | None,
        observers: Sequence[Observer],
    ):
        self.model, self.data, self.recipe, self.held_out = model, data, recipe, held_out
        self.folder, self.device = folder, model.mean.device
        self.observers = observers if place().first else ()
        loaded = isinstance(data, LoadedSet)
        self.steps_per_epoch = len(data.loader) if loaded else len(data) // recipe.batch_size
        if not self.steps_per_epoch:
            raise InputError(f"nothing to train: {len(data)} images give no batch of {recipe.batch_size}")
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.stepper = Stepper(model, recipe, self.steps_per_epoch)
        self.progress = Progress([])

    @property
    def steps_done(self) -> int:
        """Over all epochs."""
        return len(self.progress.history) * self.steps_per_epoch + self.progress.step

    def run(self, resume: bool, about: dict[str, Any]) -> None:
        """Train what is left, then calibrate and write the model; nobody else writes to the run folder meanwhile."""
        with nullcontext() if self.folder is None else self.folder.alone():
            self._run(resume, about)

    def _run(self, resume: bool, about: dict[str, Any]) -> None:
        if self.folder is not None:
            self.progress = self.folder.begin(self._config() | {"about": about}, resume)
            self._check_together()
        with fast_kernels(self.recipe.fast, self.device), ExitStack() as stack:
            request = stack.enter_context(listening()) if self.folder else Request()
            self._enter(stack)
            if self.folder is not None and self.progress.begun:
                self.folder.restore(self.model, self.stepper.optimizers)
                self.stepper.scaler.load_state_dict(self.progress.scaler)
            for observer in self.observers:
                observer.begin(self.recipe.epochs * self.steps_per_epoch, self.recipe.epochs, self.steps_done)
                stack.callback(observer.end)
            while len(self.progress.history) < self.recipe.epochs:
                self._epoch(len(self.progress.history), request)
            if request.signal is not None:
                request.obey()
        self._finish()

    def _enter(self, stack: ExitStack) -> None:
        """Random numbers, modes and forwards of a training, until the stack is left."""
        stack.enter_context(seeded(self.recipe.seed, self.device))
        stack.enter_context(training_mode(self.model, self.stepper.only_branch))
        if self.recipe.synchronise:
            stack.enter_context(synchronised_batch_norms(self.model))
        if self.recipe.compile:
            stack.enter_context(compiled(self.model))
        self.stepper.prepare()

    def _config(self) -> dict[str, Any]:
        held_out = None if self.held_out is None else self.held_out.name
        sets = {"name": self.data.name, "images": len(self.data), "held_out": held_out}
        return {"recipe": self.recipe.settings(), "model": describe(self.model), "data": sets}

    def _check_together(self) -> None:
        done = torch.tensor(float(self.steps_done), device=self.device)
        if mean_of_all(done) != done:
            raise InputError("the processes found different states to resume from; all must see the same run folder")

    def _epoch(self, number: int, request: Request) -> None:
        progress, first = self.progress, number * self.steps_per_epoch
        sums, began = torch.tensor(progress.sums, device=self.device), monotonic() - progress.seconds
        for images, labels in self._batches(number):
            metrics = self.stepper.step(first + progress.step, images, labels)
            sums += metrics
            progress.step += 1
            for observer in self.observers:
                observer.step(first + progress.step, metrics, self.recipe.batch_size)
            if self._asked_to_stop(request):
                progress.sums, progress.seconds = tuple(mean_of_all(sums).tolist()), monotonic() - began
                self._keep()
                request.obey()
        means = mean_of_all(sums / self.steps_per_epoch).tolist()
        speed = self.steps_per_epoch * self.recipe.batch_size / (monotonic() - began)
        rate = self.stepper.rate(first + progress.step - 1)
        self._end_epoch(Epoch(number + 1, *means, lr=rate, images_per_second=speed), began)

    def _asked_to_stop(self, request: Request) -> bool:
        if self.folder is None or (place().world > 1 and not self.stepper.looks(self.steps_done)):
            return False
        return any_process(request.signal is not None, self.device)

    def _batches(self, epoch: int) -> Batches | LoadedBatches:
        here = place()
        whole = given_batches(
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
        return whole.after(self.progress.step)

    def _end_epoch(self, epoch: Epoch, began: float) -> None:
        if self.held_out is not None and place().first:
            size, seed, workers = self.recipe.batch_size, self.recipe.seed, self.recipe.workers
            metrics = held_out_metrics(self.model, self.held_out, size, seed, workers)
            epoch = replace(epoch, held_out=metrics)
            if epoch.number in (self.recipe.epochs // 2, self.recipe.epochs) and self.model.branch is not None:
                for warning in self.model.method.warnings(metrics):
                    warn_caller(f"after epoch {epoch.number}, {warning}")
        epoch = replace(epoch, seconds=monotonic() - began)
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
        held_out = None
        if self.held_out is not None:
            size, workers = self.recipe.batch_size, self.recipe.workers
            held_out = given_batches(self.held_out, size, workers=workers, device=self.device)
            self.model.calibrate(held_out)
        if self.folder is not None:
            self.folder.finish(self.model, held_out, self.progress.history)
