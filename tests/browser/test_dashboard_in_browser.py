"""The dashboard of a service that runs, with the real model: what it shows, what its buttons do, and for whom."""

import os
import re
import socket

import pytest
from browser_fixtures import CUT, DESK, PHONE, WIDER
from dashboard_fixtures import Service, connected, digits

import ncttt

pytestmark = pytest.mark.browser
EVIL = "<img src=x onerror=\"document.title='taken'\">"
UNNAMED = """(parts) => parts.filter((part) => !(part.getAttribute('aria-label') || part.textContent.trim()
  || part.labels?.[0]?.textContent.trim())).length"""
HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The demonstration, with a stream of an operator beside the playground."""
    service = Service(tmp_path_factory.mktemp("dashboard"), "--save-seconds", "0.2", demo=True)
    with ncttt.Client(service.url) as client:
        for place in range(0, 192, 64):
            client.predict(list(digits("frost", 5)[place : place + 64]), "door-2")
    yield service
    service.end()


@pytest.fixture
def page(chromium, service, request):
    with connected(chromium, service.url, **getattr(request, "param", {})) as page:
        page.locator("#streams button").first.wait_for()
        yield page


@pytest.fixture
def client(service):
    with ncttt.Client(service.url) as client:
        yield client


def choose(page, name: str) -> None:
    page.locator("#streams").get_by_role("button", name=name).click()
    page.locator("#name").get_by_text(name, exact=True).wait_for()
    page.locator("#plots svg").first.wait_for()


def shares(page) -> dict[str, int]:
    """The numbers above the chart of accuracies, in percent."""
    text = page.locator(".plot").filter(has_text="Accuracy").locator(".keys").inner_text()
    return {name: int(number) for name, number in re.findall(r"(adapted|frozen)\s+(\d+)", text)}


def test_a_scenario_shows_drift_and_the_adapted_model_follows(page, client):
    page.get_by_role("button", name=re.compile("Play clean → frost")).click()
    page.locator("#playing", has_text="Sending clean").wait_for(timeout=20_000)
    page.locator("#plots .adapted").first.wait_for(timeout=20_000)
    assert page.locator("#name").inner_text() == "playground"
    page.locator("#lane .domain-name", has_text="Frost").wait_for(timeout=60_000)
    page.locator("#state", has_text="Drift alarm").wait_for(timeout=30_000)
    page.locator("#playing", has_text=re.compile(r"Sending Frost, severity 5: [89]\d0 of")).wait_for(timeout=60_000)
    found = shares(page)
    assert found["frozen"] < 50
    assert found["adapted"] > found["frozen"] + 20
    page.locator("#lane .domain-name", has_text="Motion").wait_for(timeout=60_000)
    assert page.locator("#plots .alarmed").count() >= 3
    assert "is unlike" in page.locator("#alarms").inner_text()
    assert page.locator("#events li").filter(has_text="Motion blur, severity 5").count() == 1
    assert 1 <= page.locator("#images li").count() <= 12
    assert page.locator("#images img").first.evaluate("(image) => image.naturalWidth") == 32
    assert page.locator("#images b").filter(has_text="✗").count() > 0
    page.get_by_label("Corruption").select_option("contrast")  # while it plays
    page.locator("#events li").filter(has_text="Contrast, severity 5").wait_for()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Play", exact=True).wait_for()
    with client._session.get(f"{client.url}/playground") as told:
        assert not told.json()["playing"]


def test_buttons_do_what_they_say(page, client):
    choose(page, "door-2")
    page.get_by_role("button", name="Freeze").click()
    page.locator("#state", has_text="Frozen").wait_for()
    assert client.stream("door-2")["frozen"]
    page.get_by_role("button", name="Thaw").click()
    page.locator("#state", has_text="Learning").wait_for()
    assert not client.stream("door-2")["frozen"]
    before = client.stream("door-2")["version"]
    page.get_by_role("button", name="Reset").click()
    page.locator("#done", has_text=f"version {before + 1}").wait_for()
    page.get_by_role("button", name=f"Roll back to version {before}").click()
    page.locator("#done", has_text=f"Rolled back to version {before}").wait_for()
    assert client.stream("door-2")["version"] == before + 2
    page.locator("#events li").filter(has_text=f"rolled back to {before}").wait_for()
    kinds = page.locator("#lane .sign title").all_text_contents()
    assert any("frozen" in kind for kind in kinds) or any("rolled" in kind for kind in kinds)


def test_the_keyboard_alone_reaches_everything(page, client):
    page.locator("#name", has_text="door-2").wait_for()  # the first by name
    seen: list[str] = []
    page.keyboard.press("Tab")
    for _ in range(60):
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        if seen[-1] == "freeze":
            break
        page.keyboard.press("Tab")
    assert {"theme", "data", "corruption", "severity", "play-pause", "scenario", "part"} <= set(seen)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.locator("#state", has_text="Frozen").wait_for()
    assert page.evaluate("document.activeElement.id") == "freeze"
    page.keyboard.press("Enter")
    page.locator("#state", has_text="Learning").wait_for()
    page.locator("#moment").focus()
    before = page.locator("#readout").inner_text()
    page.keyboard.press("Home")
    assert page.locator("#readout").inner_text() != before
    assert page.locator("#moment").get_attribute("aria-valuetext") == page.locator("#readout").inner_text()


def test_a_name_keeps_the_focus_while_the_list_is_drawn_again(page):
    page.locator("#streams button").first.focus()
    page.evaluate("drawStreams()")
    assert page.evaluate("document.activeElement.dataset.stream") is not None


@pytest.mark.parametrize("page", [PHONE, DESK], indirect=True, ids=["phone", "desk"])
def test_nothing_is_cut_and_the_page_does_not_scroll_sideways(page):
    choose(page, "door-2")
    page.locator("#numbers summary").click()
    page.locator("#numbers td").first.wait_for()
    assert page.evaluate(WIDER) == 0
    assert page.evaluate(CUT) == []


def test_every_chart_has_a_description_and_there_is_a_table(page):
    choose(page, "door-2")
    labels = page.locator("#plots svg, #lane svg").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    assert len(labels) == 4
    assert all(len(label) > 10 for label in labels)
    page.locator("#numbers summary").click()
    page.locator("#numbers td").first.wait_for()
    heads = page.locator("#numbers table").first.locator("th[scope=col]").all_text_contents()
    assert heads[:5] == ["Time", "Images", "Drift", "Alarm", "Agreement"]
    assert page.locator("#numbers table").first.locator("tbody tr").count() >= 1
    shares = page.locator("#numbers table").last.locator("td").all_text_contents()
    assert sum(int(share.split()[0]) for share in shares) in range(95, 106)
    assert page.locator("button:visible, select:visible, input:visible").evaluate_all(UNNAMED) == 0
    assert page.locator("[aria-live], [role=status], [role=alert]").count() <= 5  # nothing that changes each second


def test_the_theme_is_switched(page):
    choose(page, "door-2")

    def colours() -> tuple[str, str]:
        line = page.locator("#plots .line.drift").evaluate("(line) => getComputedStyle(line).stroke")
        return page.evaluate("getComputedStyle(document.body).backgroundColor"), line

    light = colours()
    page.get_by_role("button", name="Dark").click()
    assert all(one != other for one, other in zip(light, colours(), strict=True))


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_at_first_the_theme_is_the_systems(page):
    assert sum(map(int, page.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(","))) < 150


def test_a_page_that_is_not_seen_asks_nothing(page):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    assert len(asked) > 1
    page.evaluate(HIDE, True)
    page.wait_for_timeout(1500)  # what was on its way
    asked.clear()
    page.wait_for_timeout(2500)
    assert asked == []
    page.evaluate(HIDE, False)
    page.wait_for_timeout(1500)
    assert asked


def test_streams_are_paged_and_searched(page, client):
    for number in range(14):
        client.predict(digits()[0], f"gate-{number:02}")
    page.reload()
    page.locator("#of-streams", has_text="1 to 12 of").wait_for()
    page.get_by_role("button", name="Next").click()
    page.locator("#of-streams", has_text="13 to").wait_for()
    assert page.locator("#streams button").count() < 12
    page.get_by_label("Find a stream").fill("GATE-07")
    page.locator("#streams li:only-child").wait_for()
    page.keyboard.press("Enter")
    page.locator("#name", has_text="gate-07").wait_for()


def test_the_token_is_asked_for(chromium, tmp_path, monkeypatch):
    monkeypatch.setenv("NCTTT_TOKEN", "a word")
    service = Service(tmp_path, demo=True)
    try:
        with connected(chromium, service.url, complaints=True) as page:  # Chromium logs each 401
            page.get_by_label("Token").fill("another")
            page.keyboard.press("Enter")
            page.locator("#refused", has_text="refused").wait_for()
            assert page.locator("#board").is_hidden()
            page.get_by_label("Token").fill("a word")
            page.keyboard.press("Enter")
            page.get_by_role("button", name=re.compile("Play clean")).wait_for()
            assert page.locator("#entry").is_hidden()
            page.reload()  # the tab keeps it
            page.get_by_role("button", name=re.compile("Play clean")).wait_for()
            assert "a word" not in page.url
            assert page.evaluate("localStorage.length") == 0
    finally:
        service.end()


def test_a_service_that_goes_away_and_comes_back(chromium, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    service = Service(tmp_path, "--port", port)
    with connected(chromium, service.url, complaints=True) as page:
        page.locator("#connection", has_text="live").wait_for()
        assert page.locator("#playground").is_hidden()
        service.end()
        page.locator("#trouble", has_text="has not been reached since").wait_for(timeout=20_000)
        service = Service(tmp_path, "--port", port)
        page.locator("#connection", has_text="live").wait_for(timeout=20_000)
        assert page.locator("#trouble").is_hidden()
    service.end()


def test_names_stay_text(chromium, tmp_path):
    model = ncttt.load("digits-small-ncttt")
    model.classes = tuple(f"{EVIL}{number}" for number in range(10))
    ncttt.save(model, tmp_path / "model")
    os.rename(tmp_path / "model", tmp_path / "<i>model")
    service = Service(tmp_path, "--model", str(tmp_path / "<i>model"))
    try:
        with ncttt.Client(service.url) as client:
            client.predict(list(digits()[:16]), "a.-_" + "long" * 15)
        with connected(chromium, service.url) as page:
            page.locator("#images li").first.wait_for()
            page.locator("#numbers summary").click()
            assert "taken" not in page.title()
            assert page.locator("img").count() == page.locator("#images img").count()
            assert page.locator("main i, header i").count() == 0
            assert "<img src=x" in page.locator("#images").inner_text()
            assert page.evaluate(WIDER) == 0
            page.set_viewport_size({"width": 390, "height": 844})
            assert page.evaluate(WIDER) == 0
    finally:
        service.end()
