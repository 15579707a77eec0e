"""The numbers on the page of errata are those of the formulas and of the paper's tables."""

import math

import pytest
import torch
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


SCALES, DIM, BATCH = (0.025, 0.05), 16, 50  # of the paper's VisDA-C


def test_labels_of_the_broadcast_noise_on_visda_are_all_zero():
    deviations = [math.sqrt(BATCH) * sigma for sigma in SCALES]
    assert "the in-views have {:.3f} and the out-views {:.3f}".format(*deviations) in PAGE
    gap = (1 / SCALES[0] ** 2 - 1 / SCALES[1] ** 2) / 2
    logits = [DIM * (math.log(2) - gap * deviation**2) for deviation in deviations]
    assert "logits of the labels are {:.1f} and {:.1f}".format(*logits) in PAGE
    torch.manual_seed(0)
    for deviation, logit in zip(deviations, logits, strict=True):
        views = deviation * torch.randn(100_000, DIM, dtype=torch.float64)
        assert noise.soft_label_logit(views, *SCALES).mean().item() == pytest.approx(logit, rel=0.01)
        assert noise.soft_label(views, *SCALES).max() < 1e-5
    as_printed = noise.soft_label(SCALES[0] * torch.randn(100_000, DIM), *SCALES).mean().item()
    assert f"the mean label of an in-view is {as_printed:.2f}" in PAGE


@pytest.mark.parametrize(("data", "severity", "corruption"), [("cifar10", 5, "average"), ("visda-c", None, "clean")])
def test_gains(data, severity, corruption):
    ours, theirs = (paper(data, severity, corruption, method) for method in ("nc_ttt", "source"))
    assert f"is {ours - theirs:.2f} ({ours} - {theirs})" in PAGE


def test_the_network_that_was_trained_jointly_is_the_better_one():
    adapted, source = (paper("cifar10", 1, "brightness", method) for method in ("nc_ttt", "source"))
    assert f"{source} % under brightness and NC-TTT {adapted} %" in PAGE
