"""The numbers on the page of errata are those of the formulas and of the paper's tables."""

import math

import pytest
from page_contents import ROOT

from ncttt import noise
from ncttt.report import paper_accuracy

PAGE = (ROOT / "docs/errata.md").read_text()


def paper(data: str, severity: int | None, corruption: str, method: str) -> float:
    found = paper_accuracy(data, severity, corruption, method)
    assert found is not None
    return found


def test_formulas():
    right, printed = 16 * (math.log(2) - (2**2 - 1) / 2), 16 * math.log(2) - (2**2 - 1) / 2
    assert f"the logit is {right:.1f}, not {printed:+.1f}" in PAGE
    at_half, at_two = (float(noise.expected_label(beta, 16)) for beta in (1.5, 2.0))
    assert f"{at_half:.3f} at beta 1.5 and {at_two:.3f} at beta 2" in PAGE
    assert f"from beta {noise.smallest_beta(16, 0.05):.2f} on" in PAGE


@pytest.mark.parametrize(("data", "severity", "corruption"), [("cifar10", 5, "average"), ("visda-c", None, "clean")])
def test_gains(data, severity, corruption):
    ours, theirs = (paper(data, severity, corruption, method) for method in ("nc_ttt", "source"))
    assert f"is {ours - theirs:.2f} ({ours} - {theirs})" in PAGE


def test_the_network_that_was_trained_jointly_is_the_better_one():
    adapted, source = (paper("cifar10", 1, "brightness", method) for method in ("nc_ttt", "source"))
    assert f"{source} % under brightness and NC-TTT {adapted} %" in PAGE
