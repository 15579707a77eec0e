"""What the demonstration measures: every method on its own model, and that model as it is and with batch statistics."""

from __future__ import annotations

from collections.abc import Mapping

from ncttt.benchmark.grid import Entry, Grid
from ncttt.zoo import names

SHIFTS = ["gaussian_noise", "defocus_blur", "contrast"]
# The ends of the names of the zoo's models.
SHIPPED = {
    "source": "source",
    "ttt": "ttt",
    "ttt_plus": "ttt-plus",
    "clust3": "clust3",
    "ttt_flow": "ttt-flow",
    "nc_ttt": "ncttt",
}
PLAIN = ("source", "ptbn", "tent")  # and LAME: methods that take any classifier


def digits_grid(models: Mapping[str, str], images: int, seed: int = 0) -> Grid:
    """Digits are drawn thick and without texture: only the constants for large images shift them visibly."""
    return Grid(
        data="digits",
        images=images,
        corruptions=["clean", *SHIFTS],
        severities=[3],
        constants="imagenet",
        batch_sizes=[100],
        seeds=[seed],
        methods=entries(models),
    )


def pretrained_grid(images: int, seed: int = 0) -> Grid:
    """The model of digits that ships has NC-TTT's branch; methods without one run on it, too."""
    model = "digits-small-ncttt"
    return digits_grid({"source": model, "nc_ttt": model}, images, seed)


def cifar10_grid(images: int, seed: int = 0, root: str | None = None) -> Grid:
    """CIFAR-10 with the models that ship; a method without one is left out."""
    shipped = names()
    models = {method: f"cifar10-small-{short}" for method, short in SHIPPED.items()}
    models = {method: model for method, model in models.items() if model in shipped}
    return Grid(
        data="cifar10",
        root=root,
        images=images,
        corruptions=["clean", *SHIFTS],
        severities=[5],
        batch_sizes=[100],
        seeds=[seed],
        methods=entries(models),
    )


def entries(models: Mapping[str, str]) -> list[Entry]:
    """Methods without a branch on the plain model, the others on their own."""
    plain = models["source"]
    every = list(dict.fromkeys(models.values()))
    found = [Entry(method=name, checkpoint=every if name != "tent" else plain) for name in PLAIN]
    found.append(Entry(method="lame", settings={"affinity": "knn"}, checkpoint=plain))
    return found + [Entry(method=name, checkpoint=model) for name, model in models.items() if name != "source"]
