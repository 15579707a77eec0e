"""Figures by name from what a command was given: rows, trials, or a model and images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure

from ncttt.base.errors import InputError
from ncttt.benchmark.scenarios import ImageDraw
from ncttt.data import ImageSet
from ncttt.data import load as load_data
from ncttt.data.corruptions import CORRUPTIONS, corrupt
from ncttt.data.corruptions.contact_sheet import at_each_severity
from ncttt.methods import Method, Source
from ncttt.methods.settings import method_for
from ncttt.model.branched import Branched
from ncttt.report import figures
from ncttt.report.figures.adapted import confidences_of, features_of
from ncttt.report.figures.tsne import Mapped, embed
from ncttt.report.gallery import ALL, GALLERY, HOW, chosen
from ncttt.report.paper.names import spelled_method
from ncttt.zoo.checkpoint import load

ROWS_OF, ITERATIONS = "nc_ttt", 20


@dataclass(frozen=True, kw_only=True)
class Request:
    """What figures are drawn from; `method` is that of the rows, or in place of the model's own."""

    rows: Sequence[Mapping[str, Any]] | None = None
    trials: Sequence[Mapping[str, Any]] | None = None
    method: str | None = None
    model: str | None = None
    data: str = "digits"
    root: str | None = None
    images: int = 200
    corruption: str = "shot_noise"
    severity: int = 5
    constants: str | None = None
    steps: int | None = None


def drawn(names: Sequence[str], request: Request, say: Callable[[str], None]) -> Iterator[tuple[str, Figure]]:
    """The figures that were asked for, by name; of `all`, those that the request has enough for, and `say` why not."""
    for name in chosen(names):
        figure = _drawn_or_said(name, request, say) if ALL in names else draw(name, request)
        if figure is not None:
            yield name, figure


def draw(name: str, request: Request) -> Figure:
    """One figure of the gallery."""
    (name,) = chosen([name])
    needs = GALLERY[name].needs
    if needs in HOW and getattr(request, needs) is None:
        raise InputError(f"the figure {name} needs {needs}: {HOW[needs]}")
    return FIGURES[name]() if needs == "nothing" else _MAKERS[name](request)


def _drawn_or_said(name: str, request: Request, say: Callable[[str], None]) -> Figure | None:
    try:
        return draw(name, request)
    except InputError as error:
        say(f"left out {name}: {error}")
        return None


def _iterations(request: Request) -> Figure:
    return figures.draw_iterations(request.rows or [], request.method or ROWS_OF)


def _shift(request: Request) -> Figure:
    return figures.draw_shift(request.rows or [], request.method or ROWS_OF)


def _corruptions(request: Request) -> Figure:
    image = load_data(request.data, "test", root=request.root).images[0]
    each = {name: at_each_severity(image, name, constants=request.constants) for name in CORRUPTIONS}
    return figures.draw_corruptions(image, each)


def _tsne(request: Request) -> Figure:
    model, method, data = _model(request)
    steps = ITERATIONS if request.steps is None else request.steps
    before = features_of(model, Source(), data)
    after = features_of(model, method, data, steps)
    first, second = embed(before.features, after.features)
    title = f"{steps} iterations of {spelled_method(method.name)}"
    shown = Mapped(first, before.predicted), Mapped(second, after.predicted)
    return figures.draw_tsne(*shown, data.labels, data.classes, title)


def _reliability(request: Request) -> Figure:
    model, method, data = _model(request)
    found = {
        "before": confidences_of(model, Source(), data),
        f"after {spelled_method(method.name)}": confidences_of(model, method, data, request.steps),
    }
    return figures.draw_reliability(found)


def _model(request: Request) -> tuple[Branched, Method, ImageSet]:
    """A model, the method to adapt it with, and the corrupted images that a benchmark would show it."""
    model = load(request.model or f"{request.data}-small-ncttt")
    method = method_for(model.method, request.method)
    clean = load_data(request.data, "test", root=request.root)
    drawn = ImageDraw(request.data, "test", request.images, root=request.root).read()
    options = {"indices": drawn.places, "constants": request.constants}
    images = corrupt(drawn.images, request.corruption, request.severity, **options)
    return model, method, replace(clean.subset(drawn.places), images=images)


FIGURES: dict[str, Callable[[], Figure]] = {
    "method": figures.draw_method,
    "posterior": figures.draw_posterior,
    "samples": figures.draw_samples,
    "field": figures.draw_field,
    "beta": figures.draw_beta,
}
_MAKERS: dict[str, Callable[[Request], Figure]] = {
    "iterations": _iterations,
    "tsne": _tsne,
    "layers": lambda request: figures.draw_layers(request.trials or []),
    "attribution": lambda request: figures.draw_attribution(request.rows or []),
    "shift": _shift,
    "corruptions": _corruptions,
    "reliability": _reliability,
}
