"""The closing sentences are made from the numbers, for better or worse."""

import numpy as np
import pytest

from ncttt.benchmark.intervals import Difference
from ncttt.demo.verdict import in_points, ranking, verdict, worth_of_steps
from report.report_rows import row

WORSE, SAME, BETTER = Difference(-0.02, -0.03, -0.01), Difference(0.01, -0.01, 0.03), Difference(0.02, 0.01, 0.03)
TOO_FEW = Difference(0.02, -1.0, 1.0)


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (WORSE, "NC-TTT does not win here: "),
        (SAME, "NC-TTT does not win here, it is statistically indistinguishable from TENT: "),
        (BETTER, "NC-TTT wins here: "),
        (TOO_FEW, "Whether NC-TTT or TENT is better here cannot be told with so few images: "),
    ],
)
def test_only_an_interval_without_zero_makes_a_winner(gap, said):
    assert ranking(70.0, "tent", 71.0, gap).startswith(said)


def test_steps_are_worth_something_if_their_interval_leaves_out_zero():
    assert worth_of_steps(BETTER).endswith("which is significant.")
    assert worth_of_steps(SAME).endswith("statistically indistinguishable from nothing.")
    assert worth_of_steps(TOO_FEW).endswith("which may be by chance.")


def test_no_difference_has_no_sign_of_a_loss():
    assert in_points(Difference(-0.0001, -0.01, 0.01)) == "+0.0 points (95 % interval -1.0 to +1.0)"


class Predictions:
    """A store of what was right, by method and checkpoint: the first images of each batch of ten."""

    def __init__(self, rights, images=100):
        self.rights, self.images = rights, images

    def right(self, key):
        method, checkpoint = next(each for each in self.rights if all(part in key.split("/") for part in each))
        return np.arange(self.images)[None] % 10 < self.rights[method, checkpoint]


RIGHTS = {
    ("source", "small"): 3,
    ("ptbn", "small"): 6,
    ("tent", "small"): 8,
    ("ptbn", "own"): 5,
    ("nc_ttt", "own"): 7,
}


def said_of(images):
    facts = {"batch_size": 10, "images": images}
    rows = [
        row(method, corruption, right / 10 if corruption == "fog" else 1.0, checkpoint=checkpoint, **facts)
        for (method, checkpoint), right in RIGHTS.items()
        for corruption in ("clean", "fog")
    ]
    return verdict(Predictions(RIGHTS, images), rows, plain="small")


def test_nc_ttt_is_compared_with_the_best_of_the_others_on_the_shifts():
    said = said_of(100)
    assert "NC-TTT does not win here: 70.0 % of the shifted images are right with NC-TTT, 80.0 % with TENT" in said
    assert "-10.0 points (95 % interval -10.0 to -10.0)" in said
    assert "Its steps add +20.0 points" in said  # to batch statistics on its own model


@pytest.mark.parametrize("images", [10, 30])
def test_too_few_batches_for_an_interval_are_told_and_how_many_images_it_takes(images):
    said = said_of(images)
    assert "indistinguishable" not in said
    assert "cannot be told with so few images" in said
    assert said.endswith(f"An interval takes 200 images of each shift, 4 batches of 50; here are {images}.")
    assert "cannot be told" not in said_of(40)  # four batches
