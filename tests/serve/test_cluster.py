"""A service with two replicas on a local Ray cluster: the answers of one process, and no end when a replica dies."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import requests
from processes import alive, below, end, replicas_below
from service import MODEL, Service, digits, png

import ncttt
from ncttt.serve import ServiceError
from ncttt.serve.ownership import AHEAD, NOBODY, Claims
from ncttt.serve.snapshots import Snapshots

pytestmark = pytest.mark.ray
STREAMS = [f"door-{number}" for number in range(8)]
WORD = {"Authorization": "Bearer word"}
OPTIONS = ("--save-seconds", "0.2", "--settings.gather", "2")


class Clustered(Service):
    """A service on a cluster of its own, all of whose processes are known."""

    def __init__(self, folder, *options):
        folder.mkdir(exist_ok=True)
        self.started: dict[int, str] = {}
        super().__init__(folder, "--engine", "ray", "--replicas", "2", *options)
        self.started = below(self.process.pid)


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NCTTT_TOKEN", "word")
        service = Clustered(tmp_path_factory.mktemp("clustered"), *OPTIONS)
    yield service
    service.started |= below(service.process.pid)
    service.end(signal.SIGKILL)
    end(service.started)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NCTTT_TOKEN", "word")
        service = Service(tmp_path_factory.mktemp("alone"), *OPTIONS)
    yield service
    service.end(signal.SIGKILL)


def told(service: Service) -> list:
    """What a service answers to one of each kind of request, without what differs from one run to the next."""
    seen = []
    with ncttt.Client(service.url, "word") as client:
        for first, stream in enumerate(("left", "right", "left", "right", "left")):
            answer = client.predict(digits()[first : first + 4], stream, probabilities=True, shift=True)
            rows = [{key: row[key] for key in row if key != "id"} for row in answer["predictions"]]
            seen += [rows, answer["batch"], answer["outcome"], answer["drift"], answer["version"]]
        labels = {row["id"]: "1" for row in answer["predictions"]}
        seen += [client.feedback(labels), client.feedback({"unknown-0": "1"}), client.about()]
        version = client.freeze("left")["version"]
        for facts in (client.thaw("left"), client.roll_back(version, "left"), client.reset("right")):
            seen.append({key: facts[key] for key in ("name", "hot", "version", "saved", "frozen", "images", "drift")})
    for name in ("left", "right"):
        history = requests.get(f"{service.url}/streams/{name}/history", headers=WORD).json()
        sums = [sum(point[key] for point in history["points"]) for key in ("images", "changed", "steps", "labels")]
        seen.append([sums, [event["text"] for event in history["events"] if "drift" not in event["text"]]])
        assert sums[0] == {"left": 12, "right": 8}[name]
        assert history["shown"]
    asked = [("GET", "/streams"), ("GET", "/streams?first=1&most=1"), ("GET", "/streams/none"), ("GET", "/streams/-")]
    asked += [("DELETE", "/streams/right"), ("DELETE", "/streams/right"), ("POST", "/streams/left/roll-back")]
    asked += [("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/predict"), ("GET", "/none")]
    for verb, path in asked:
        answer = requests.request(verb, service.url + path, headers=WORD)
        value = answer.json() if answer.content else None
        for stream in value.get("streams", []) if isinstance(value, dict) else []:
            stream.pop("versions")
            stream.pop("saved")
        seen.append((verb, path, answer.status_code, value))
    page = requests.get(f"{service.url}/metrics", headers=WORD).text
    seen.append(sorted(set(re.findall(r"^(ncttt_\w+)\{?", page, re.MULTILINE))))
    seen.append(requests.get(f"{service.url}/about").status_code)  # without the token
    seen.append(requests.get(f"{service.url}/openapi.json", headers=WORD).json()["paths"])
    return seen


def test_both_engines_answer_the_same(alone, clustered):
    for one, other in zip(told(alone), told(clustered), strict=True):
        assert one == other


def test_streams_are_spread_and_each_series_names_its_replica(clustered):
    with ncttt.Client(clustered.url, "word") as client:
        for stream in STREAMS:
            client.predict(digits()[:2], stream)
    page = requests.get(f"{clustered.url}/metrics", headers=WORD).text
    owners = dict(re.findall(r'^ncttt_state_version\{replica="(\w+)",stream="(door-\d)"\}', page, re.MULTILINE))
    assert len(owners) == 2
    owned = {stream: Claims(clustered.log.parent / "states", "test").owner(stream) for stream in STREAMS}
    assert set(owned.values()) == set(owners)


def test_no_port_of_the_cluster_is_open_to_others(clustered):
    """Whoever reaches a port of Ray can run code; the one that is on all addresses asks for the cluster's token."""
    import grpc

    words = {f"pid={pid}," for pid in below(clustered.process.pid)}
    lines = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    mine = [line.split()[3] for line in lines if any(word in line for word in words)]
    assert len(mine) > 5
    for port in (place.rpartition(":")[2] for place in mine if "127.0.0.1" not in place):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            ask = channel.unary_unary("/ray.serve.ASGIService/HandleRequest")
            with pytest.raises(grpc.RpcError) as error:
                ask(b"", timeout=10)
            assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED


class Traffic(threading.Thread):
    """Sends single images of a stream until it is told to stop, and notes what came of each and when."""

    def __init__(self, url: str, stream: str, stop: threading.Event):
        super().__init__(daemon=True)
        self.url, self.stream, self.stop = url, stream, stop
        self.answers: list[tuple[float, dict]] = []
        self.failed: list[str] = []

    def run(self) -> None:
        with ncttt.Client(self.url, "word") as client:
            for image in (image for _ in range(1000) for image in digits()):
                if self.stop.is_set():
                    return
                try:
                    self.answers.append((time.monotonic(), client.predict(image, self.stream)))
                except ServiceError as error:
                    self.failed.append(str(error))


def test_a_replica_that_is_killed_costs_no_request_and_no_acknowledged_state(clustered):
    stop = threading.Event()
    traffic = [Traffic(clustered.url, stream, stop) for stream in STREAMS]
    for each in traffic:
        each.start()
    wait_for(lambda: all(len(each.answers) > 10 for each in traffic))
    before = {stream: Claims(clustered.log.parent / "states", "test").owner(stream) for stream in STREAMS}
    victim = replicas_below(clustered.process.pid)[0]
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    acknowledged = {each.stream: each.answers[-1][1]["saved"] for each in traffic}
    wait_for(lambda: all(len([at for at, _ in each.answers if at > killed + 2]) > 10 for each in traffic))
    stop.set()
    for each in traffic:
        each.join(60)
    gaps = {each.stream: longest_gap(each) for each in traffic}
    jumped = [each for each in traffic if largest_step(each) > 1]
    sent = sum(len(each.answers) for each in traffic)
    print(f"{sent} answers, {sum(len(each.failed) for each in traffic)} failed, {len(jumped)} streams moved by force")
    print("longest wait for an answer:", {stream: round(gap, 2) for stream, gap in gaps.items()})
    assert [each.failed for each in traffic if each.failed] == []
    assert 0 < len(jumped) < len(STREAMS)  # those of the dead replica, and no others
    assert len({before[each.stream] for each in jumped}) == 1
    store = Snapshots(clustered.log.parent / "states", 8)
    for each in traffic:
        versions = [answer["version"] for _, answer in each.answers]
        assert versions == sorted(set(versions))  # they never fall, and none stands for two states
        assert each.answers[-1][1]["saved"] >= acknowledged[each.stream]
        newest = store.versions(each.stream)[-1]
        assert store.read(each.stream, newest)[0].version == newest
    for each in jumped:
        pairs = pairwise(each.answers)
        ((last, first),) = [(last, first) for (_, last), (_, first) in pairs if first["version"] > last["version"] + 1]
        assert first["version"] >= last["saved"] + AHEAD  # it went on from the newest on disk
    assert max(gaps.values()) < 20


def longest_gap(traffic: Traffic) -> float:
    times = [at for at, _ in traffic.answers]
    return max(after - before for before, after in pairwise(times))


def largest_step(traffic: Traffic) -> int:
    versions = [answer["version"] for _, answer in traffic.answers]
    return max(after - before for before, after in pairwise(versions))


def wait_for(true, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_ctrl_c_answers_what_was_accepted_saves_and_leaves_no_process(clustered):
    """The last test of this service: its streams are given up, so nobody has to take them."""
    wait_for(lambda: len(replicas_below(clustered.process.pid)) == 2)  # the one that was killed is replaced
    content = png(digits()[0])
    with ThreadPoolExecutor(16) as pool:
        url = f"{clustered.url}/predict"
        asked = [
            pool.submit(requests.post, url, files={"image": content}, data={"stream": STREAMS[n % 8]}, headers=WORD)
            for n in range(16)
        ]
        wait_for(lambda: 'route="/predict"' in requests.get(f"{clustered.url}/metrics", headers=WORD).text)
        clustered.started |= below(clustered.process.pid)
        began = time.monotonic()
        code = clustered.end(signal.SIGINT)
        done = [each for each in asked if each.exception() is None]
    print(f"ended in {time.monotonic() - began:.1f} s")
    assert code in (0, 130)
    assert all(each.result().status_code == 200 for each in done)
    states = clustered.log.parent / "states"
    versions: dict[str, int] = {}
    for answer in (each.result().json() for each in done):
        versions[answer["stream"]] = max(answer["version"], versions.get(answer["stream"], 0))
    assert versions
    for stream, version in versions.items():
        assert Snapshots(states, 8).versions(stream)[-1] == version
        assert Claims(states, "test").owner(stream) == NOBODY
    wait_for(lambda: not alive(clustered.started), 20)
    assert clustered.log.read_text().count("\n") == 1  # where it listened, and nothing else


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--replicas", "2"], "--replicas needs --engine ray"),
        (["--address", "auto"], "--address needs --engine ray"),
        (["--engine", "ray", "--replicas", "0"], "replicas must be"),
        (["--engine", "ray", "--replicas", "3-2"], "found '3-2'"),
        (["--engine", "ray", "--address", "127.0.0.1:9"], "no Ray cluster at 127.0.0.1:9"),
        (["--engine", "ray", "--model", "none"], "none"),
    ],
)
def test_what_cannot_be_is_one_line(words, named, tmp_path):
    command = [sys.executable, "-m", "ncttt", "serve", "--port", "0", "--state", str(tmp_path / "s"), "--model", MODEL]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert named in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_without_ray_the_extra_is_named(tmp_path):
    """The help needs neither Ray nor torch."""
    start = (
        "import sys; sys.modules['ray'] = None; from ncttt.cli import main; code = main(sys.argv[1:]); sys.exit(code)"
    )
    words = ["serve", "--model", MODEL, "--engine", "ray", "--state", str(tmp_path / "s"), "--port", "0"]
    done = subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines() == ["ncttt: --engine ray needs ray: pip install 'ncttt[ray]'"]
    shown = start.replace("sys.modules['ray']", "sys.modules['torch'] = sys.modules['ray']")
    helped = subprocess.run(
        [sys.executable, "-c", shown, "serve", "--help"], capture_output=True, text=True, timeout=60
    )
    assert helped.returncode == 0, helped.stderr
    assert "--replicas" in helped.stdout
