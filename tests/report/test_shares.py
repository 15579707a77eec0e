"""What a gain is made of, from rows: source statistics, batch statistics, steps."""

import json

import pytest
from report_rows import row

from ncttt.report.shares import shares_of_each_corruption, shares_of_rows

BATCH = {"settings": json.dumps({"name": "nc_ttt", "norm": "batch"})}


def rows(checkpoint: str = "small") -> list[dict]:
    accuracies = {"clean": (0.9, 0.88, 0.89), "fog": (0.4, 0.6, 0.65), "snow": (0.5, 0.7, 0.71)}
    found = []
    for corruption, (source, batch, adapted) in accuracies.items():
        found += [
            row("source", corruption, source, checkpoint=checkpoint),
            row("ptbn", corruption, batch, checkpoint=checkpoint),
            row("nc_ttt", corruption, adapted, checkpoint=checkpoint, **BATCH),
        ]
    return found


def test_statistics_and_steps_add_up_over_the_corruptions_without_the_clean_images():
    (share,) = shares_of_rows(rows())
    assert (share.method, share.checkpoint, share.corruptions) == ("nc_ttt", "small", ("snow", "fog"))
    assert share.source == pytest.approx(45)
    assert share.statistics == pytest.approx(20)
    assert share.steps == pytest.approx(3)
    assert share.statistics + share.steps == pytest.approx(share.adapted - share.source)


def test_each_corruption_by_itself_has_the_clean_images_too():
    found = {share.corruptions[0]: share for share in shares_of_each_corruption(rows())}
    assert sorted(found) == ["clean", "fog", "snow"]
    assert found["clean"].statistics == pytest.approx(-2)
    assert found["fog"].steps == pytest.approx(5)


def test_an_online_method_is_compared_with_statistics_that_were_measured_once():
    still = [one for one in rows() if one["method"] != "nc_ttt"]
    online = [row("nc_ttt", "fog", 0.7, protocol="online", **BATCH)]
    (share,) = shares_of_rows(still + online)
    assert share.setup["protocol"] == "online"
    assert share.steps == pytest.approx(10)


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": json.dumps({"name": "nc_ttt", "norm": "source"})},
        {"settings": json.dumps({"name": "nc_ttt", "norm": ["batch", "source"]})},
        BATCH | {"seed": 1},
        BATCH | {"weights": "others"},
    ],
)
def test_what_was_run_otherwise_has_no_share(changes: dict):
    still = [one for one in rows() if one["method"] != "nc_ttt"]
    assert shares_of_rows([*still, row("nc_ttt", "fog", 0.7, **changes)]) == []


def test_a_blend_does_not_stand_for_batch_statistics():
    blended = json.dumps({"name": "ptbn", "norm": "blend(0.5)"})
    found = [one | {"settings": blended} if one["method"] == "ptbn" else one for one in rows()]
    assert shares_of_rows(found) == []
