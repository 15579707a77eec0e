"""The routes of the dashboard: its page, histories, and who may read them."""

import re

import pytest
from service import client_of, digits, labels, predict
from starlette.testclient import TestClient

PAGE = ("/", "/dashboard/style.css", "/dashboard/palette.css", "/dashboard/dashboard.js")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_of(tmp_path_factory.mktemp("dashboard")) as client:
        yield client


def history(client: TestClient, stream: str, since: int = 0) -> dict:
    answer = client.get(f"/streams/{stream}/history", params={"since": since})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_page_and_its_files_run_nothing_of_others(client):
    for path in PAGE:
        answer = client.get(path)
        assert answer.status_code == 200
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", answer.text)
    page = client.get("/").text
    assert not re.search(r"<script(?! src)|<style|\son\w+=|\sstyle=", page)
    for name in re.findall(r'(?:src|href)="(dashboard/[^"]+)"', page):
        assert client.get(f"/{name}").status_code == 200, name


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fapp.py", "page.html", "__init__.py"])
def test_the_page_has_no_other_files(client, name):
    assert client.get(f"/dashboard/{name}").status_code == 404


def test_a_history_grows_with_its_stream(client):
    for place in (0, 8):
        predict(client, digits()[place : place + 8], "grows")
    told = history(client, "grows")
    assert sum(point["images"] for point in told["points"]) == 16
    assert sum(sum(point["classes"].values()) for point in told["points"]) == 16
    assert told["points"][-1]["version"] == told["facts"]["version"] == 2
    assert told["facts"]["images"] == 16
    assert len(told["shown"]) in (4, 8)
    assert history(client, "grows", told["next"] + 10**6)["points"] == []


def test_a_stream_that_is_not_there_has_an_empty_history(client):
    told = history(client, "nobody")
    assert (told["points"], told["events"], told["shown"], told["facts"]) == ([], [], [], None)
    assert "nobody" not in [stream["name"] for stream in client.get("/streams").json()["streams"]]


def test_what_operators_do_is_in_the_history(client):
    predict(client, digits()[:2], "operated")
    for action in ("freeze", "thaw", "reset"):
        assert client.post(f"/streams/operated/{action}").status_code == 200
    version = history(client, "operated")["facts"]["versions"][0]
    client.post("/streams/operated/roll-back", json={"version": version})
    assert [event["kind"] for event in history(client, "operated")["events"] if event["kind"] != "alarm"] == [
        "frozen",
        "thawed",
        "reset",
        "rolled back",
    ]
    client.delete("/streams/operated")
    assert history(client, "operated")["events"] == []


def test_labels_that_come_are_in_the_history(client):
    rows = predict(client, digits()[:20], "labelled")["predictions"]
    given = [{"id": row["id"], "label": str(label)} for row, label in zip(rows, labels(), strict=False)]
    score = client.post("/feedback", json={"labels": given}).json()["scores"][0]
    points = history(client, "labelled")["points"]
    assert sum(point["labels"] for point in points) == 20
    assert sum(point["adapted"] for point in points) == round(20 * score["adapted_accuracy"])
    assert sum(point["source"] for point in points) == round(20 * score["source_accuracy"])


def test_streams_are_found_by_a_part_of_their_name(client):
    for name in ("Door-1", "door-2", "gate"):
        predict(client, digits()[:1], name)
    found = client.get("/streams", params={"part": "dOOR"}).json()
    assert [stream["name"] for stream in found["streams"]] == ["Door-1", "door-2"]
    assert found["total"] == 2
    assert client.get("/streams", params={"part": "x" * 65}).status_code == 422


def test_only_streams_in_memory_have_a_history(tmp_path):
    with client_of(tmp_path, hot_streams=1) as client:
        for name in "ab":
            predict(client, digits()[:2], name)
        assert history(client, "a")["points"] == []
        assert history(client, "a")["facts"]["hot"] is False
        assert len(history(client, "b")["points"]) == 1


def test_no_image_is_kept_where_that_is_not_wanted(tmp_path):
    with client_of(tmp_path, most_shown=0) as client:
        predict(client, digits()[:4])
        assert history(client, "default")["shown"] == []
        assert client.get("/about").json()["most_shown"] == 0


def test_a_protocol_without_states_has_histories(tmp_path):
    with client_of(tmp_path, protocol="episodic") as client:
        predict(client, digits()[:16])
        told = history(client, "default")
        assert told["facts"] is None
        assert told["points"][0]["images"] == 16


def test_the_page_needs_no_token_and_its_data_do(tmp_path):
    with client_of(tmp_path, token="word") as client:
        for path in PAGE:
            assert client.get(path).status_code == 200
        for path in ("/about", "/streams", "/streams/default/history", "/playground", "/docs"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"Authorization": "Bearer word"}).status_code != 401


def test_pages_of_others_get_not_even_the_page(client):
    assert client.get("/", headers={"Origin": "http://elsewhere.example"}).status_code == 403
    assert client.get("/dashboard/theme.js", headers={"Host": "rebound.example"}).status_code == 403
