"""The model that is served: loaded once, and the source of the adapters of all streams."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from torch import Tensor

from ncttt import data, zoo
from ncttt.adapt import Adapter
from ncttt.adapt.arguments import Stop
from ncttt.adapt.protocols import protocol_of
from ncttt.adapt.small_batches import ENOUGH, STREAM, is_risky
from ncttt.base.devices import available, use_threads
from ncttt.base.errors import InputError
from ncttt.data.files.resizing import SQUARE, side_of
from ncttt.methods import METHODS, Method, Source, method_for
from ncttt.methods.shared import number_of_classes
from ncttt.model.branched import Branched
from ncttt.monitor import Monitor
from ncttt.monitor.stored import weights_digest
from ncttt.serve.drift import CertaintyWatcher, MonitorWatcher, Watcher
from ncttt.serve.offered import Offered
from ncttt.serve.settings import Settings


class Served(Offered):
    """A model with the method that adapts it, as the settings of a service ask for it."""

    def __init__(self, settings: Settings):
        use_threads(settings.threads)
        if settings.method is not None:
            METHODS.find(settings.method)  # first, because the model may be for this very method
        self.model = zoo.load(settings.model).to(available(settings.device))
        if self.model.input_shape is None:
            raise InputError(f"{settings.model} does not say for which images it was made; save it with ncttt.attach")
        protocol = protocol_of(settings.protocol)
        super().__init__(
            size=side_of(self.model.input_shape, settings.model),
            resize=getattr(self.model, "resize", SQUARE),
            classes=tuple(self.model.classes or map(str, range(number_of_classes(self.model)))),
            protocol=protocol,
            method=_method(settings, self.model.method, protocol.remembers),
            stop=_stop(settings, self.model.calibrated),
        )
        self.weights = weights_digest(self.model)
        self._settings = settings
        self._monitor = None if settings.monitor is None else _monitor(self.model, settings.monitor)
        self._source = Adapter(self.model, Source())
        self._still = Adapter(self.model, replace(self.method, gather=0)) if self.adapter().has_score else None

    def offered(self) -> Offered:
        """What there is to know of it elsewhere."""
        return Offered(**{field.name: getattr(self, field.name) for field in fields(Offered)})

    def adapter(self) -> Adapter:
        """A new adapter of the model, for one stream."""
        settings, watched = self._settings, self.protocol.remembers and self._settings.on_collapse != "none"
        return Adapter(
            self.model,
            self.method,
            steps=settings.steps,
            lr=settings.lr,
            norm=settings.norm if settings.norm is not None else self._norm(),
            protocol=self.protocol,
            stop=self.stop,
            on_collapse=settings.on_collapse if watched else None,  # type: ignore[arg-type]
            seed=settings.seed,
        )

    def watcher(self) -> Watcher | None:
        """A new watch over the drift of one stream; None where it is not known how source images look."""
        if self._monitor is not None:
            return MonitorWatcher(self._monitor)
        return CertaintyWatcher(self.model) if self.model.calibrated else None

    def source_logits(self, images: Tensor) -> Tensor:
        """Logits `(B, classes)` of the model as it was trained."""
        return self._source(images)

    def shift(self, images: Tensor) -> Tensor | None:
        """Shift score `(B,)` before adaptation, as `ncttt adapt` writes it; None for methods without a score."""
        return None if self._still is None else self._still.shift(images)

    def _norm(self) -> tuple[str, str] | None:
        """Statistics of the stream where single images would else be normalised by their own; None for the method's.

        Behind the source gate the adapter takes care of that itself.
        """
        norm, gradient = self.method.norm, self.method.gradient_norm
        risky = is_risky(norm if isinstance(norm, str) else norm[1], 1) and bool(self.model.batch_norms())
        return (gradient, STREAM) if risky and self.stop is None and self.protocol.remembers else None


def _stop(settings: Settings, calibrated: bool) -> Stop:
    if settings.stop == "source" and not calibrated:
        raise InputError(
            f"{settings.model} does not know how certain it is of source images, as --stop source needs: use --stop "
            "none, or calibrate it (model.calibrate(batches) in Python, then ncttt.save)"
        )
    return "source" if calibrated and settings.stop != "none" else None


def _method(settings: Settings, own: Method, remembers: bool) -> Method:
    asked = settings.settings or {}
    method = method_for(own, settings.method, asked)
    gathers = remembers and method.learns and method.learns_from == "batch" and "gather" not in asked
    return replace(method, gather=method.gather or ENOUGH) if gathers else method


def _monitor(model: Branched, asked: str) -> Monitor:
    """A monitor with the calibration in a file, or calibrated on the held-out images of a data set."""
    monitor = Monitor(model)
    return monitor.load(asked) if Path(asked).is_file() else monitor.calibrate(data.load(asked, "val"))
