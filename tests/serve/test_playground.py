"""The playground: labelled images through the worker, bounded, and what is refused."""

import os
import time

import pytest
from service import Service, client_of

import ncttt
from ncttt.base.errors import InputError
from ncttt.cli import main
from ncttt.serve.dashboard import playground as module
from ncttt.serve.dashboard.playground import fitting
from ncttt.serve.demo import chosen_settings

STEPS = {"playground": True, "steps": 2, "lr": 1e-3}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_of(tmp_path_factory.mktemp("playground"), **STEPS) as client:
        yield client


def play(client, **asked) -> dict:
    answer = client.post("/playground/play", json={"images_per_second": 200, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def until(client, done) -> dict:
    """What the playground tells once that is done."""
    for _ in range(1200):
        told = client.get("/playground").json()
        if done(told):
            return told
        time.sleep(0.05)
    raise AssertionError(told)


def points(client) -> list[dict]:
    return client.get("/streams/playground/history").json()["points"]


def share(rows: list[dict], name: str) -> float:
    return sum(row[name] for row in rows) / sum(row["labels"] for row in rows)


def test_a_scenario_drifts_and_the_adapted_model_follows(client, monkeypatch):
    monkeypatch.setattr(module, "OF_PHASE", 250)
    play(client, scenario=True)
    told = until(client, lambda told: not told["playing"])
    assert (told["sent"], told["most"], told["trouble"]) == (1000, 1000, None)
    events = client.get("/streams/playground/history").json()["events"]
    domains = [(event["text"], event["total"]) for event in events if event["kind"] == "domain"]
    assert domains == [
        ("Clean", 0),
        ("Frost, severity 5", 250),
        ("Motion blur, severity 5", 500),
        ("Clean", 750),
    ]
    phases = [[row for row in points(client) if low < row["total"] <= low + 250] for low in (0, 250, 500, 750)]
    accuracies = [(share(phase, "adapted"), share(phase, "source")) for phase in phases]
    for clean in (accuracies[0], accuracies[3]):
        assert min(clean) > 0.9
    for adapted, frozen in accuracies[1:3]:
        assert frozen < 0.5
        assert adapted > frozen + 0.2
    assert sum(row["labels"] for row in points(client)) == 1000
    alarmed = [sum(row["alarm"] for row in phase) / len(phase) for phase in phases]
    assert alarmed[1] > 0.8 > 0.2 > alarmed[0]


def test_a_scenario_begins_with_a_new_stream(client, monkeypatch):
    monkeypatch.setattr(module, "OF_PHASE", 20)
    play(client, corruption="contrast")
    until(client, lambda told: told["sent"] >= 20)
    play(client, scenario=True)
    until(client, lambda told: not told["playing"])
    assert points(client)[-1]["total"] == 80


def test_the_corruption_changes_while_it_plays_and_pauses(client):
    assert play(client, corruption="fog", severity=3)["playing"]
    until(client, lambda told: told["sent"] >= 10)
    play(client, corruption="snow", severity=2)
    until(client, lambda told: told["sent"] >= 10 and told["corruption"] == "snow")
    assert not client.post("/playground/pause").json()["playing"]
    total = points(client)[-1]["total"]
    time.sleep(0.3)
    assert points(client)[-1]["total"] == total
    texts = [event["text"] for event in client.get("/streams/playground/history").json()["events"]]
    assert texts.index("Fog, severity 3") < texts.index("Snow, severity 2")


def test_it_ends_by_itself_and_keeps_its_rate(client, monkeypatch):
    monkeypatch.setattr(module, "MOST", 30)
    began = time.monotonic()
    play(client, images_per_second=30)
    assert until(client, lambda told: not told["playing"])["sent"] == 30
    assert time.monotonic() - began > 0.9  # three batches of ten


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"data": "cifar100"}, "no image set 'cifar100'"),
        ({"corruption": "snwo"}, "did you mean 'snow'"),
        ({"severity": 6}, "severity"),
        ({"images_per_second": 100_000}, "images_per_second"),
        ({"speed": 3}, "speed"),
    ],
)
def test_what_cannot_be_played_is_refused(client, asked, named):
    answer = client.post("/playground/play", json=asked)
    assert answer.status_code == 422
    assert named in answer.json()["detail"]


def test_there_is_none_unless_asked_for(tmp_path):
    with client_of(tmp_path) as client:
        assert client.get("/playground").status_code == 404
        assert client.get("/about").json()["playground"] is False


def test_image_sets_have_the_classes_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("NCTTT_DATA", str(tmp_path))  # without CIFAR-10
    assert fitting(tuple("0123456789"), 32) == ["digits"]
    for classes, size in ((ncttt.data.data_set("cifar10").classes, 32), (tuple("0123456789"), 64), (("a",), 32)):
        with pytest.raises(InputError, match="here are digits"):
            fitting(classes, size)


def test_a_service_ends_while_it_plays(tmp_path):
    with client_of(tmp_path, **STEPS) as client:
        play(client, corruption="snow")
    with client_of(tmp_path, **STEPS) as client:  # its state is complete
        assert client.get("/streams/playground").json()["version"] >= 1


def test_the_demonstration_is_up_and_plays(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    service = Service(tmp_path, demo=True)
    try:
        with ncttt.Client(service.url) as client:
            about = client.about()
        assert (about["model"], about["steps"], about["playground"]) == ("digits-small-ncttt", 2, True)
        assert "open it in a browser" in service.log.read_text()
        assert [path.name.startswith("ncttt-demo-") for path in tmp_path.iterdir() if path.is_dir()] == [True]
    finally:
        assert service.end() == 0
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_what_is_asked_for_stays_beside_demo(tmp_path):
    with chosen_settings(demo=True, steps=0, state=str(tmp_path / "own"), most_shown=0) as settings:
        assert (settings.steps, settings.lr, settings.most_shown) == (0, 1e-3, 0)
        assert settings.state == str(tmp_path / "own")


def test_without_model_and_demo_there_is_one_line(capsys):
    assert main(["serve"]) == 2
    error = capsys.readouterr().err
    assert "--model" in error
    assert "--demo" in error
    assert error.count("\n") == 1


def test_a_playground_without_images_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NCTTT_DATA", str(tmp_path))
    words = ["--model", "cifar10-small-ncttt", "--demo", "--port", "0", "--state", str(tmp_path / "s")]
    assert main(["serve", *words]) == 2
    assert "ncttt data get cifar10" in capsys.readouterr().err
    assert os.listdir(tmp_path)


def test_a_demonstration_without_a_playground(tmp_path):
    with chosen_settings(demo=True, playground=False) as settings:
        assert settings.playground is False


def test_a_demonstration_on_a_cluster_needs_a_folder_that_all_see():
    with pytest.raises(InputError, match="needs --state"), chosen_settings(demo=True, cluster="head:6379"):
        pass
