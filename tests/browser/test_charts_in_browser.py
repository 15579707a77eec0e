"""The charts of the report page: drawn, sorted, filtered, hovered, printed, described, and names that stay text."""

from itertools import pairwise

import pytest
from browser_fixtures import DESK, PHONE, WIDER, visited
from page_rows import many_rows, page_rows
from report_rows import row

from ncttt.report.page import write_page

pytestmark = pytest.mark.browser
EVIL = "<img src=x onerror=\"document.title='taken'\">"
SIZES = [{"viewport": {"width": 1400, "height": 900}}, {"viewport": {"width": 390, "height": 844}}]


def texts(page, kind: str) -> list[str]:
    return page.locator(f"[data-chart={kind}] text").all_text_contents()


def rows_of(page, kind: str) -> list[str]:
    """The names down the side of a chart, from its top."""
    found = page.evaluate(
        """(kind) => [...document.querySelectorAll(`[data-chart=${kind}] text[text-anchor=end]`)]
          .map((text) => [text.getBoundingClientRect().top, text.textContent])""",
        kind,
    )
    return [name for _, name in sorted(found)]


@pytest.mark.parametrize("opened", [PHONE, DESK], indirect=True, ids=["phone", "desk"])
def test_every_chart_is_drawn_and_has_a_description_and_a_table(opened):
    kinds = opened.evaluate("[...document.querySelectorAll('[data-chart]')].map((box) => box.dataset.chart)")
    assert kinds == ["ranking", "corruptions", "severity", "shares", "cost", "steps", "drift"]
    for kind in kinds:
        box = opened.locator(f"[data-chart={kind}]")
        assert box.locator("svg path").count() > 3
        assert len(box.get_attribute("aria-label")) > 30
        assert box.locator("xpath=ancestor::figure//table").count() > 0


@pytest.mark.parametrize("opened", SIZES, indirect=True, ids=["desk", "phone"])
def test_the_first_screen_has_the_finding_and_one_whole_chart(opened):
    height = opened.viewport_size["height"]
    lead, chart = (opened.locator(part).bounding_box() for part in (".lead", "[data-chart=ranking]"))
    assert lead["y"] + lead["height"] < chart["y"] + 1
    assert chart["y"] + chart["height"] <= height
    assert opened.locator("[data-chart=corruptions]").bounding_box()["y"] > height


def test_corruptions_are_sorted_as_asked(opened):
    for order, first in (("name", "Brightness"), ("given", "Clean")):
        opened.get_by_label("Sort by").select_option(order)
        assert rows_of(opened, "corruptions")[0] == first


def test_a_method_that_is_not_ticked_leaves_every_chart(opened):
    tick = opened.locator("#severity").get_by_label("TENT", exact=True)
    assert "TENT" in texts(opened, "cost")
    tick.focus()
    opened.keyboard.press("Space")
    assert "TENT" not in texts(opened, "cost")
    assert not opened.locator("#cost").get_by_label("TENT", exact=True).is_checked()
    assert "TENT" in texts(opened, "ranking")


def test_hovering_tells_the_numbers(opened):
    box = opened.locator("[data-chart=ranking]")
    box.hover(position={"x": 300, "y": 40})
    assert opened.locator("[data-chart=ranking] .tip b").first.inner_text().endswith("%")


def test_charts_follow_the_theme_and_print_in_light(opened):
    def ink() -> str:
        return opened.locator("[data-chart=ranking] text").first.get_attribute("fill")

    light = ink()
    opened.get_by_role("button", name="Dark").click()
    assert ink() != light
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert ink() == light
    assert not opened.evaluate("[...state.charts.values()].some((chart) => chart.getOption().animation)")
    assert opened.locator("[data-chart=ranking] svg").bounding_box()["width"] <= 700
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert ink() != light


def test_a_page_can_be_printed(opened):
    assert opened.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("opened", [{"reduced_motion": "reduce"}, {}], indirect=True, ids=["still", "moving"])
def test_nothing_moves_where_that_is_not_wanted(opened, request):
    moves = opened.evaluate("[...state.charts.values()].some((chart) => chart.getOption().animation)")
    assert moves == (request.node.callspec.id == "moving")


def test_every_control_is_native_and_has_a_name(opened):
    controls = opened.locator("button:visible, select:visible, input:visible, summary:visible, nav a:visible")
    assert controls.count() > 20
    unnamed = controls.evaluate_all(
        """(parts) => parts.filter((part) => part.tabIndex < 0
          || !(part.textContent.trim() || part.labels?.[0]?.textContent.trim())).length"""
    )
    assert unnamed == 0


def odd_pages() -> dict[str, list[dict]]:
    stream = {"corruption": "fog+snow", "protocol": "continual", "accuracy_of_parts": '{"fog": 0.5, "snow": 0.6}'}
    bare = {"data": "photos", "corruption": "fog", "severity": 5, "method": "source", "accuracy": 0.5}
    published = [one | {"data": "cifar10-c", "constants": "published"} for one in page_rows()]
    return {
        "one row": [bare],
        "one method": [one for one in page_rows() if one["method"] == "nc_ttt"],
        "clean alone": page_rows(corruptions=("clean",)),
        "no attribution": [one for one in page_rows() if one["method"] != "ptbn"],
        "several sets": page_rows() + [one | {"data": "a/folder/of images"} for one in page_rows()] + published,
        "a stream": [row(name, accuracy=0.5, **stream) for name in ("source", "tent")],
        "no means": [row("source", "fog", 0.5), row("tent", "snow", 0.5)],
        "strangers": page_rows({f"package.module:Mine{number}": 0.01 * number for number in range(9)}),
        "not a number": [one | {"accuracy_at": '{"0": NaN, "5": 0.5}'} for one in page_rows()],
    }


@pytest.mark.parametrize("name", odd_pages())
def test_odd_rows_make_a_page_without_errors(name, chromium, tmp_path):
    path = write_page(odd_pages()[name], tmp_path)
    with visited(chromium, path.as_uri()) as page:
        assert page.evaluate(WIDER) == 0
        assert "a/folder" not in page.locator("main > section:not(.folded)").first.inner_text()


def test_names_in_charts_and_tooltips_stay_text(chromium, tmp_path):
    rows = [one | {"method": EVIL} if one["method"] == "nc_ttt" else one for one in page_rows()]
    with visited(chromium, write_page(rows, tmp_path, title="Mine").as_uri()) as page:
        for kind, position in (("ranking", {"x": 300, "y": 40}), ("corruptions", {"x": 300, "y": 20})):
            page.locator(f"[data-chart={kind}]").hover(position=position)
            assert page.locator(f"[data-chart={kind}] .tip").count() > 0
        assert page.title() == "Mine"
        assert page.locator("img").count() == 0
        assert page.locator(".legend").first.inner_text().count("onerror") == 1


def test_headings_are_in_order(chromium, tmp_path):
    with visited(chromium, write_page(many_rows(), tmp_path).as_uri()) as page:
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((part) => Number(part.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - former <= 1 for former, later in pairwise(levels))
