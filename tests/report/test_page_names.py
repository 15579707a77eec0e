"""What the page calls things, and how they look: short, unlike each other, and the same in all charts."""

import json

from page_rows import page_rows

from ncttt.report.names import Column
from ncttt.report.page.looks import looks_of
from ncttt.report.page.names import line_names, model_names
from ncttt.report.page.setups import setups_of
from ncttt.report.page.severities import severities_of


def column(label: str, checkpoint: str | None, **settings) -> Column:
    return Column(label, checkpoint, None, json.dumps({"name": label, **settings}))


def test_a_method_on_the_common_model_has_the_bare_name_and_on_others_that_of_the_model():
    columns = [column("source", "zoo-a"), column("ptbn", "zoo-a"), column("tent", "zoo-a"), column("ptbn", "zoo-b")]
    assert list(line_names(columns, model_names(columns)).values()) == ["Source", "PTBN", "PTBN, zoo-b", "TENT"]


def test_settings_tell_lines_apart_and_names_stay_short():
    columns = [column("tent", "a", lr=rate, path=f"/some/where/{rate}", steps=rate, more=rate) for rate in (1, 2)]
    names = list(line_names(columns, model_names(columns)).values())
    assert names == ["TENT, lr=1, path=1", "TENT, lr=2, path=2"]


def test_names_that_would_be_the_same_are_numbered():
    columns = [column("one:Mine", None), column("two:Mine", None)]
    assert list(line_names(columns, {None: ""}).values()) == ["Mine", "Mine 2"]


def test_a_method_has_one_colour_and_a_variant_another_form():
    rows = page_rows({"source": None, "ptbn": 0.0, "nc_ttt": 0.02, "their own": 0.01})
    variant = [
        one | {"method": "nc_ttt that stops", "key": f"stops {one['key']}"} for one in rows if one["method"] == "nc_ttt"
    ]
    looks = looks_of(setups_of(rows + variant))
    assert looks["NC-TTT"].colour == looks["NC-TTT that stops"].colour == "series-1"
    assert (looks["NC-TTT"].form, looks["NC-TTT that stops"].form) == (0, 1)
    assert len({look.colour for name, look in looks.items() if "stops" not in name}) == 4


def test_severities_are_compared_on_the_corruptions_that_all_of_them_have():
    rows = [
        *page_rows(corruptions=("fog", "snow"), severity=3, statistics=0.3),
        *page_rows(corruptions=("fog",), severity=5, statistics=0.2),
    ]
    (group,) = severities_of(setups_of(rows))
    assert (group.values, group.corruptions) == ((3, 5), ("fog",))
    assert [round(value, 6) for value in group.accuracy["PTBN"]] == [70.0, 60.0]


def test_one_severity_is_no_group():
    assert severities_of(setups_of(page_rows())) == []
