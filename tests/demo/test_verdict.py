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
        (TOO_FEW, "NC-TTT does not win here, it is statistically indistinguishable from TENT: "),
    ],
)
def test_only_an_interval_without_zero_makes_a_winner(gap, said):
    assert ranking(70.0, "tent", 71.0, gap).startswith(said)


def test_steps_are_worth_something_if_their_interval_leaves_out_zero():
    assert worth_of_steps(BETTER).endswith("which is significant.")
    assert worth_of_steps(SAME).endswith("statistically indistinguishable from nothing.")


def test_no_difference_has_no_sign_of_a_loss():
    assert in_points(Difference(-0.0001, -0.01, 0.01)) == "+0.0 points (95 % interval -1.0 to +1.0)"


class Predictions:
    """A store of what was right, by method and checkpoint: the first images of each batch of ten."""

    def __init__(self, rights):
        self.rights = rights

    def right(self, key):
        method, checkpoint = next(each for each in self.rights if all(part in key.split("/") for part in each))
        return np.arange(100)[None] % 10 < self.rights[method, checkpoint]


def test_nc_ttt_is_compared_with_the_best_of_the_others_on_the_shifts():
    rights = {
        ("source", "small"): 3,
        ("ptbn", "small"): 6,
        ("tent", "small"): 8,
        ("ptbn", "own"): 5,
        ("nc_ttt", "own"): 7,
    }
    rows = [
        row(method, corruption, right / 10 if corruption == "fog" else 1.0, checkpoint=checkpoint, batch_size=10)
        for (method, checkpoint), right in rights.items()
        for corruption in ("clean", "fog")
    ]
    said = verdict(Predictions(rights), rows, plain="small")
    assert "NC-TTT does not win here: 70.0 % of the shifted images are right with NC-TTT, 80.0 % with TENT" in said
    assert "-10.0 points (95 % interval -10.0 to -10.0)" in said
    assert "Its steps add +20.0 points" in said  # to batch statistics on its own model
