"""The report page as a reader uses it: from disk, without a network, by mouse and keyboard, on a desk and a phone."""

import pytest
from browser_fixtures import CUT, DESK, PHONE, WIDER, unfold

from ncttt.report.table import MISSING

pytestmark = pytest.mark.browser


def column(page, name: str, table: str = "#methods") -> list[str]:
    """What the visible lines of a table have in a column."""
    return page.evaluate(
        """([table, name]) => {
          const heads = [...document.querySelectorAll(`${table} table.sortable thead th`)];
          const place = heads.findIndex((head) => head.textContent.trim() === name);
          const rows = [...document.querySelectorAll(`${table} table.sortable tbody tr`)];
          return rows.filter((row) => !row.hidden).map((row) => row.cells[place].textContent.trim());
        }""",
        [table, name],
    )


def numbers(texts: list[str]) -> list[float]:
    return [float(text.split()[0]) for text in texts if text != MISSING]


def test_a_click_sorts_and_another_turns_it_round(opened):
    unfold(opened)
    button = opened.locator("#methods thead").get_by_role("button", name="Mean")
    button.click()
    found = numbers(column(opened, "Mean"))
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 5
    assert button.locator("..").get_attribute("aria-sort") == "descending"
    button.click()
    assert numbers(column(opened, "Mean")) == sorted(found)
    assert button.locator("..").get_attribute("aria-sort") == "ascending"
    assert opened.locator("#methods th[aria-sort]").count() == 1


def test_the_keyboard_sorts_names_and_sees_where_it_is(opened):
    unfold(opened)
    button = opened.locator("#methods thead").get_by_role("button", name="Method")
    button.focus()
    opened.keyboard.press("Enter")
    found = column(opened, "Method")
    assert [name.lower() for name in found] == sorted(name.lower() for name in found)
    opened.keyboard.press("Tab")
    assert opened.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    opened.keyboard.press("Space")
    assert opened.locator("#methods th[aria-sort]").count() == 1


def test_missing_numbers_come_last_whichever_way_round(opened):
    unfold(opened)
    button = opened.locator("#methods thead").get_by_role("button", name="Gain")
    for _ in range(2):
        button.click()
        found = column(opened, "Gain")
        missing = found.count(MISSING)
        assert missing == 4
        assert found[-missing:] == [MISSING] * missing


def test_filters_leave_what_was_asked_for_everywhere(opened):
    assert opened.locator("#count").inner_text() == "44 of 44 lines"
    opened.get_by_label("Severity", exact=True).select_option("3")
    opened.get_by_label("Method", exact=True).select_option("NC-TTT")
    assert opened.locator("#count").inner_text() == "2 of 44 lines"
    assert set(column(opened, "Method")) == {"NC-TTT"}
    assert set(column(opened, "Severity", "#corruptions")) == {"3"}
    assert "severity 3" in opened.locator("#corruptions [data-setup]").inner_text()
    bars = opened.locator("[data-chart=ranking] text").all_text_contents()
    assert {text for text in bars if "%" not in text} == {"NC-TTT", "Source", "without adaptation"}
    opened.get_by_role("button", name="Show all").click()
    assert opened.locator("#count").inner_text() == "44 of 44 lines"


def test_the_theme_is_switched_and_remembered(opened):
    def paper() -> str:
        return opened.evaluate("getComputedStyle(document.body).backgroundColor")

    light = paper()
    opened.get_by_role("button", name="Dark").click()
    dark = paper()
    assert dark != light
    opened.reload()
    assert paper() == dark
    opened.get_by_role("button", name="Light").click()
    assert paper() == light


@pytest.mark.parametrize("opened", [{"color_scheme": "dark"}], indirect=True)
def test_at_first_the_theme_is_the_systems(opened):
    assert sum(map(int, opened.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(","))) < 150


@pytest.mark.parametrize("opened", [PHONE, DESK], indirect=True, ids=["phone", "desk"])
def test_nothing_is_cut_and_the_page_does_not_scroll_sideways(opened):
    for unfolded in (False, True):
        if unfolded:
            unfold(opened)
        assert opened.evaluate(WIDER) == 0
        assert opened.evaluate(CUT) == []


@pytest.mark.parametrize("opened", [PHONE], indirect=True)
def test_on_a_phone_the_names_stay_while_numbers_scroll(opened):
    unfold(opened)
    box = opened.locator("#corruptions .scroll").first
    box.evaluate("box => { box.scrollLeft = 300; }")
    assert box.evaluate("box => box.scrollLeft") == 300
    edges = box.evaluate(
        "box => [box.getBoundingClientRect().left, box.querySelector('tbody th').getBoundingClientRect().left]"
    )
    assert edges[0] == pytest.approx(edges[1], abs=1)


@pytest.mark.parametrize("opened", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_the_tables_are_there(opened):
    assert opened.locator("#methods tbody tr:visible").count() == 44
    assert not opened.locator("form.filters").is_visible()
    assert not opened.locator("#theme").is_visible()
    assert opened.locator("[data-chart]:visible, .controls:visible, .legend:visible").count() == 0
    assert opened.locator("#corruptions tbody tr:visible").count() == 44


def test_paper_shows_what_was_folded(opened):
    folded = opened.locator("details:not([open])").count()
    assert folded > 0
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.locator("details:not([open])").count() == 0
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.locator("details:not([open])").count() == folded


def test_a_link_to_what_is_folded_opens_it(opened):
    opened.get_by_role("link", name="What was run").click()
    opened.locator("#run dl").first.wait_for(state="visible", timeout=5000)
