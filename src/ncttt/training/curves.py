"""The curves of a training as a figure."""

from collections.abc import Sequence
from pathlib import Path

from ncttt.training.figures import Epoch


def draw_curves(history: Sequence[Epoch], path: Path) -> None:
    """Draw losses and accuracy over the epochs, training and held out, to an SVG or PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    epochs = [epoch.number for epoch in history]
    for axes, name in zip(figure.subplots(1, 3), ("cross_entropy", "auxiliary", "accuracy"), strict=True):
        axes.plot(epochs, [getattr(epoch, name) for epoch in history], label="training")
        if all(name in epoch.held_out for epoch in history):
            axes.plot(epochs, [epoch.held_out[name] for epoch in history], label="held out")
        axes.set(title=name.replace("_", "-"), xlabel="epoch")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path)
