"""The method as a diagram (Fig. 1).

What learns in training, and what moves at test time.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncttt.report.figures.shared.boxes import Box, Look, draw_arrow, draw_box
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.shared.style import (
    BLUE,
    GREY,
    INK,
    INSIDE,
    OUTSIDE,
    PALE,
    VERMILION,
    WIDTH,
    new_figure,
    styled,
)

PLACE = 1
UNITS = 100.0  # the width of the diagram; one unit is 0.08 inches
LEARNS = Look(fill="#CFE5F3", edge=BLUE, weight=2.4)  # heavier, so that grey tells it from frozen, too
FROZEN = Look(fill=PALE, edge=GREY)
PLAIN = Look(fill="white", edge=INK)
LOSS = Look(fill="#FBE6C2", edge=INK)
GROUP = Look(fill="#FAFAFA", edge="#C8C8C8")
IN_VIEW = Look(fill="white", edge=INSIDE)
OUT_VIEW = Look(fill="white", edge=OUTSIDE, line="--")

# Columns of the diagram: boxes at height zero, moved to their rows when drawn.
IMAGES, ENCODER, REST, PREDICTION = Box(7, 0, 9, 8), Box(22.5, 0, 15, 8), Box(48, 0, 15, 8), Box(68, 0, 14, 8)
TAP = 34.0
PROJECTOR, VIEW, JUDGE, LOSSES = Box(TAP, 0, 12, 8), Box(52.5, 0, 15, 8), Box(75.5, 0, 16, 8), Box(93.5, 0, 10, 8)


def make(_: Request) -> Figure:
    """The figure, which needs nothing."""
    return draw_method()


@styled
def draw_method() -> Figure:
    """Training above, where all parts learn from a joint loss; test time below, where only the encoder moves."""
    heights = 42.0, 35.0, 6.0
    figure = new_figure(height=sum(heights) / UNITS * WIDTH)
    training, test, key = _stack(figure, heights)
    _draw_training(training)
    _draw_test(test)
    _draw_key(key)
    return figure


def _stack(figure: Figure, heights: tuple[float, ...]) -> list[Axes]:
    """Axes without scales, one below the other, all in the units of the diagram."""
    figure.set_layout_engine("none")
    total, stacked = sum(heights), []
    for number, height in enumerate(heights):
        axes = figure.add_axes((0, 1 - sum(heights[: number + 1]) / total, 1, height / total))
        axes.set(xlim=(0, UNITS), ylim=(0, height))
        axes.set_axis_off()
        stacked.append(axes)
    return stacked


def _draw_training(axes: Axes) -> None:
    axes.text(2, 39.5, "Training on labelled source images: every part learns", weight="bold", va="center")
    _draw_classifier(axes, 31, "source\nimages", "prediction", rest=LEARNS)
    _draw_projector(axes, tap=31, row=12.5, look=LEARNS)
    _draw_views(axes)
    _draw_losses(axes)


def _draw_views(axes: Axes) -> None:
    """Two noisy views: the discriminator sees the views, the soft label knows the noise."""
    group = Box(VIEW.x, 12.5, 18, 21.5)
    draw_box(axes, group, "", GROUP)
    draw_box(axes, VIEW.at(18), "in-view:\n$z$ + noise $\\sigma_\\mathrm{in}$", IN_VIEW)
    draw_box(axes, VIEW.at(7), "out-view:\n$z$ + noise $\\sigma_\\mathrm{out}$", OUT_VIEW)
    draw_arrow(axes, PROJECTOR.at(12.5).right, group.left)
    axes.text(41.7, 13.6, "$z$", ha="center")
    for row, text, what in ((18, "discriminator\n$q$", "views"), (7, "soft label by\ndensity ratio", "noise")):
        draw_box(axes, JUDGE.at(row), text, LEARNS if row == 18 else PLAIN)
        draw_arrow(axes, (group.right[0], row), JUDGE.at(row).left)
        axes.text((group.right[0] + JUDGE.left[0]) / 2, row + 0.9, what, ha="center", size=9)


def _draw_losses(axes: Axes) -> None:
    """Each branch has its loss; the sum is what training lowers."""
    class_loss, joint, noise_loss = LOSSES.at(31), Box(LOSSES.x, 21.75, 10, 4.5), LOSSES.at(12.5)
    draw_box(axes, class_loss, "class\nloss", LOSS)
    draw_box(axes, noise_loss, "noise\nloss", LOSS)
    draw_box(axes, joint, "joint loss", LOSS)
    axes.text(LOSSES.x, 39.5, "class labels", ha="center", va="center")
    draw_arrow(axes, (LOSSES.x, 38), class_loss.top)
    draw_arrow(axes, PREDICTION.at(31).right, class_loss.left)
    draw_arrow(axes, class_loss.bottom, joint.top)
    draw_arrow(axes, noise_loss.top, joint.bottom)
    axes.text(LOSSES.x + 1, 18, r"$\times\, \lambda$", va="center")
    bend = (JUDGE.right[0] + LOSSES.left[0]) / 2
    for row, end in ((18, 14), (7, 11)):
        draw_arrow(axes, JUDGE.at(row).right, (bend, row), (bend, end), (LOSSES.left[0], end))


def _draw_test(axes: Axes) -> None:
    axes.text(2, 33, "Test time without labels: only the encoder moves", weight="bold", va="center")
    _draw_classifier(axes, 24.5, "test\nimages", "prediction\nafterwards", rest=FROZEN)
    _draw_projector(axes, tap=24.5, row=9.5, look=FROZEN)
    judge, loss = JUDGE.at(9.5), LOSSES.at(9.5)
    draw_box(axes, judge, "discriminator\n$q$", FROZEN)
    draw_box(axes, loss, "$-\\log q(z)$", LOSS)
    draw_arrow(axes, PROJECTOR.at(9.5).right, judge.left)
    axes.text(VIEW.x, 10.4, "$z$, without noise", ha="center")
    draw_arrow(axes, judge.right, loss.left)
    encoder = ENCODER.at(24.5)
    draw_arrow(axes, loss.bottom, (loss.x, 1.5), (encoder.x, 1.5), encoder.bottom, color=VERMILION, line="--")
    axes.text(VIEW.x, 2.4, "gradient, a few steps for each batch", ha="center")


def _draw_classifier(axes: Axes, row: float, images: str, prediction: str, rest: Look) -> None:
    """The way from images to a prediction, with the tap between the encoder and the rest."""
    for shift in (1.4, 0.7):
        draw_box(axes, IMAGES.at(row + shift).moved(shift), "", PLAIN)
    draw_box(axes, IMAGES.at(row), images, PLAIN)
    draw_box(axes, ENCODER.at(row), "encoder,\nup to the tap", LEARNS)
    draw_box(axes, REST.at(row), "rest of the\nclassifier", rest)
    draw_box(axes, PREDICTION.at(row), prediction, PLAIN)
    draw_arrow(axes, (IMAGES.right[0] + 1.4, row), ENCODER.at(row).left)
    draw_arrow(axes, ENCODER.at(row).right, REST.at(row).left)
    draw_arrow(axes, REST.at(row).right, PREDICTION.at(row).left)


def _draw_projector(axes: Axes, tap: float, row: float, look: Look) -> None:
    """The branch leaves the classifier at the tap."""
    axes.plot(TAP, tap, "o", color=INK, markersize=6, zorder=3)
    axes.text(TAP, tap + 1.4, "tap", ha="center")
    draw_arrow(axes, (TAP, tap), PROJECTOR.at(row).top)
    draw_box(axes, PROJECTOR.at(row), "projector", look)


def _draw_key(axes: Axes) -> None:
    for x, look, text in ((4, LEARNS, "learns"), (20, FROZEN, "frozen"), (36, LOSS, "loss")):
        draw_box(axes, Box(x, 3, 4, 2.6), "", look)
        axes.text(x + 3.2, 3, text, va="center")
    draw_arrow(axes, (50, 3), (56, 3), color=VERMILION, line="--")
    axes.text(57.2, 3, "gradient that adapts", va="center")
