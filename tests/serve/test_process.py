"""A service as a process: killed in the middle of traffic, asked to stop, used by the client and the command."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import requests
import torch
from PIL import Image
from service import MODEL, Service, digits, png

import ncttt
from ncttt.cli import main
from ncttt.serve import ServiceError
from ncttt.serve.snapshots import Snapshots

KILLS = 5


class Traffic(threading.Thread):
    """Sends single images of a stream until the service is gone, and notes what was acknowledged."""

    def __init__(self, url: str, stream: str):
        super().__init__(daemon=True)
        self.url, self.stream, self.answers = url, stream, []

    def run(self) -> None:
        with ncttt.Client(self.url) as client, suppress(ServiceError):
            for image in np.tile(digits(), (50, 1, 1, 1)):
                self.answers.append(client.predict(image, self.stream))


def test_kill_9_five_times_loses_no_acknowledged_state(tmp_path):
    acknowledged = {"a": 0, "b": 0}
    for kill in range(KILLS):
        service = Service(tmp_path, "--wait-ms", "0", "--save-seconds", "0.05")
        with ncttt.Client(service.url) as client:
            for stream, saved in acknowledged.items():
                first = client.predict(digits()[:1], stream)
                assert first["version"] >= saved + 1  # one more than what it went on from
        traffic = [Traffic(service.url, stream) for stream in acknowledged]
        for each in traffic:
            each.start()
        until = time.monotonic() + 30
        while min(len(each.answers) for each in traffic) < 20 and time.monotonic() < until:
            time.sleep(0.01)
        service.end(signal.SIGKILL)
        for each in traffic:
            each.join(30)
            assert len(each.answers) >= 20, kill
            acknowledged[each.stream] = each.answers[-1]["saved"]
            assert each.answers[-1]["saved"] > 0
    store = Snapshots(tmp_path / "states", 8)
    for stream, saved in acknowledged.items():
        newest = store.versions(stream)[-1]
        assert newest >= saved
        facts, state = store.read(stream, newest)  # its checksum is checked
        assert facts.version == newest
        assert isinstance(state["_extra_state"]["batches"], int)


def test_sigterm_answers_everything_that_was_accepted(tmp_path):
    service = Service(tmp_path, "--wait-ms", "1500", "--batch-size", "1000")
    content = png(digits()[0])
    with ThreadPoolExecutor(20) as pool:
        asked = [
            pool.submit(requests.post, f"{service.url}/predict", files={"image": content}, data={"stream": f"s{n % 3}"})
            for n in range(20)
        ]
        until = time.monotonic() + 30
        while "ncttt_queue_images 20.0" not in requests.get(f"{service.url}/metrics").text:
            assert time.monotonic() < until
            time.sleep(0.01)
        code = service.end(signal.SIGTERM)
        answers = [each.result() for each in asked]
    assert [answer.status_code for answer in answers] == [200] * 20
    assert code == 0
    versions = {answer.json()["stream"]: answer.json()["version"] for answer in answers}
    store = Snapshots(tmp_path / "states", 8)
    assert {name: store.versions(name)[-1] for name in store.names()} == versions
    assert service.log.read_text().count("\n") == 1  # where it listens, and nothing else


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    os.environ["NCTTT_TOKEN"] = "word"
    service = Service(tmp_path_factory.mktemp("service"), "--settings.gather", "0", "--batch-size", "128")
    yield service
    del os.environ["NCTTT_TOKEN"]
    service.end()


def test_the_client_takes_images_of_many_kinds(service, tmp_path):
    pixels = digits()[:3]
    path = tmp_path / "one.png"
    Image.fromarray(pixels[0]).save(path)
    floats = torch.from_numpy(pixels.copy()).permute(0, 3, 1, 2).float().div(255)
    with ncttt.Client(service.url, token="word") as client:
        kinds = [path, str(path), [path], png(pixels[0]), Image.fromarray(pixels[0]), pixels[0], floats[0]]
        answers = [client.predict(kind, f"kind{number}") for number, kind in enumerate(kinds)]
        several = [client.predict(kind, f"several{number}") for number, kind in enumerate([pixels, floats])]
        assert len({answer["predictions"][0]["probability"] for answer in answers}) == 1
        assert [len(answer["predictions"]) for answer in several] == [3, 3]
        assert several[0]["predictions"][2]["probability"] == several[1]["predictions"][2]["probability"]
        ids = {row["id"]: "1" for row in several[0]["predictions"]}
        assert client.feedback(ids)["scores"][0]["labels"] == 3
        assert client.freeze("several0")["frozen"]
        assert not client.thaw("several0")["frozen"]
        version = client.reset("several0")["version"]
        assert client.roll_back(version, "several0")["version"] == version + 1
        assert client.stream("several0")["version"] == version + 1
        assert client.about()["model"] == MODEL


@pytest.mark.parametrize(
    ("images", "named"),
    [([], "at least one"), (3, "int"), (torch.rand(4, 8, 8), "float"), (torch.full((3, 8, 8), 2.0), "in")],
)
def test_the_client_refuses_what_is_no_image(service, images, named):
    with pytest.raises(ncttt.InputError, match=named):
        ncttt.Client(service.url).predict(images)


def test_the_client_passes_on_what_the_service_says(service):
    with pytest.raises(ServiceError, match="401") as error:
        ncttt.Client(service.url).about()
    assert error.value.status == 401
    with pytest.raises(ServiceError, match="no stream"):
        ncttt.Client(service.url, "word").stream("unknown")
    with pytest.raises(ServiceError, match="no answer"):
        ncttt.Client("http://127.0.0.1:9", "word").about()
    with pytest.raises(ncttt.InputError, match="address"):
        ncttt.Client("localhost:8000")


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, image in enumerate(digits()[:150]):
        Image.fromarray(image).save(folder / f"{number:03}.png")
    return folder


def test_a_folder_sent_to_a_service_gives_the_same_files(service, photos, tmp_path, capsys):
    common = ["--images", str(photos), "--batch-size", "75"]
    remote, local = str(tmp_path / "remote.csv"), str(tmp_path / "local.csv")
    assert main(["adapt", "--url", service.url, "--stream", "folder", *common, "--out", remote]) == 0
    assert "150 in 2 batches" in capsys.readouterr().out
    options = ["--protocol", "online", "--shuffle", "false", "--threads", "1"]
    assert main(["adapt", "--model", MODEL, *common, *options, "--out", local]) == 0
    for kind in (".csv", ".trace.csv"):
        assert Path(remote).with_suffix(kind).read_text() == Path(local).with_suffix(kind).read_text()
    assert main(["adapt", "--url", service.url, *common, "--out", remote]) == 2  # is there already


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "--model or --url"),
        (["--url", "http://127.0.0.1:9", "--model", MODEL], "both"),
        (["--url", "http://127.0.0.1:9", "--protocol", "online"], "--protocol"),
        (["--url", "http://127.0.0.1:9"], "no answer"),
    ],
)
def test_what_cannot_be_sent_is_one_line(words, named, photos, tmp_path, capsys):
    assert main(["adapt", "--images", str(photos), "--out", str(tmp_path / "o.csv"), *words]) == 2
    assert named in capsys.readouterr().err


def test_two_services_do_not_share_a_folder_of_states(service, capsys):
    states = str(service.log.parent / "states")
    assert main(["serve", "--model", MODEL, "--port", "0", "--state", states]) == 2
    assert "is being written by" in capsys.readouterr().err


def test_a_port_that_is_taken_is_one_line(service, tmp_path):
    port = service.url.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "ncttt", "serve", "--model", MODEL, "--port", port, "--state", str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("ncttt: ")
    assert "Traceback" not in done.stderr


def test_sigterm_while_it_starts_ends_it(tmp_path):
    command = [
        sys.executable,
        "-m",
        "ncttt",
        "serve",
        "--model",
        MODEL,
        "--port",
        "0",
        "--state",
        str(tmp_path / "states"),
    ]
    for seconds in (1.0, 2.0, 3.0):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(seconds)
            process.send_signal(signal.SIGTERM)
            told = process.communicate(timeout=30)[1]
        assert process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM), told
        assert "Traceback" not in told
