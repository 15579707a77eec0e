"""The process that owns the model: killed, started again, and never left behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import requests
from processes import alive, below, end, gone, model_below
from service import MODEL, Service, digits, png

import ncttt
from ncttt.serve.process.messages import END, Images, packed, receive
from ncttt.serve.snapshots import Snapshots

SECONDS = 60


@contextmanager
def running(folder, *options):
    """A service, of which nothing is left afterwards."""
    service = Service(folder, *options)
    started = below(service.process.pid)
    try:
        yield service
    finally:
        service.end(signal.SIGKILL)
        end(started)


def until(done) -> None:
    limit = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.01)


def status(service: Service, path: str) -> int:
    return requests.get(service.url + path, timeout=SECONDS).status_code


def predicted(service: Service, stream: str = "door") -> requests.Response:
    files = {"image": png(digits()[0])}
    return requests.post(f"{service.url}/predict", files=files, data={"stream": stream}, timeout=SECONDS)


def test_a_killed_model_is_started_again_and_goes_on_from_the_snapshots(tmp_path):
    with running(tmp_path, "--wait-ms", "0", "--save-seconds", "0") as service:
        first = model_below(service.process.pid)
        versions = [predicted(service).json()["version"] for _ in range(3)]
        os.kill(first, signal.SIGKILL)
        until(lambda: status(service, "/readyz") == 503)
        assert status(service, "/healthz") == 200
        answer = predicted(service)  # waits for the new process
        assert answer.status_code == 200, answer.text
        assert answer.json()["version"] == versions[-1] + 1
        assert status(service, "/readyz") == 200
        second = model_below(service.process.pid)
        assert second != first
        page = requests.get(f"{service.url}/metrics").text
        assert 'ncttt_images_total{stream="door"} 4.0' in page
        assert "ncttt_queue_images 0.0" in page
        assert service.end() == 0
        assert "the process of the model has ended (signal 9); another one is started" in service.log.read_text()
        assert Snapshots(tmp_path / "states", 8).versions("door")[-1] == versions[-1] + 1


def test_requests_that_a_killed_model_had_are_refused_at_once(tmp_path):
    with running(tmp_path, "--wait-ms", "60000", "--batch-size", "1000") as service, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(predicted, service) for _ in range(8)]
        until(lambda: "ncttt_queue_images 8.0" in requests.get(f"{service.url}/metrics").text)
        os.kill(model_below(service.process.pid), signal.SIGKILL)
        answers = [each.result(SECONDS) for each in asked]
        assert {answer.status_code for answer in answers} == {503}
        assert {answer.headers["retry-after"] for answer in answers} == {"1"}
        assert "has ended before it answered" in answers[0].json()["detail"]
        assert "ncttt_queue_images 0.0" in requests.get(f"{service.url}/metrics").text


def test_a_model_that_cannot_be_started_again_is_told_by_healthz(tmp_path):
    ncttt.save(ncttt.load(MODEL), tmp_path / "model")
    with running(tmp_path, "--model", str(tmp_path / "model")) as service:
        assert predicted(service).status_code == 200
        (tmp_path / "model").rename(tmp_path / "elsewhere")
        os.kill(model_below(service.process.pid), signal.SIGKILL)
        until(lambda: status(service, "/healthz") == 503)
        assert predicted(service).status_code == 503
        assert "cannot be started again" in service.log.read_text()
        assert service.end() == 0


def test_a_killed_service_leaves_no_model_behind(tmp_path):
    with running(tmp_path) as service:
        started = below(service.process.pid)
        assert model_below(service.process.pid) in started
        service.end(signal.SIGKILL)
        until(lambda: not alive(started))


def test_a_model_that_is_left_behind_keeps_the_folder_of_states(tmp_path):
    with running(tmp_path) as service:
        model = model_below(service.process.pid)
        os.kill(model, signal.SIGSTOP)  # so that it cannot notice
        service.end(signal.SIGKILL)
        command = [sys.executable, "-m", "ncttt", "serve", "--model", MODEL, "--port", "0"]
        refused = subprocess.run(
            [*command, "--state", str(tmp_path / "states")], capture_output=True, text=True, timeout=120
        )
        assert refused.returncode == 2
        assert "is being written by" in refused.stderr
        os.kill(model, signal.SIGCONT)
        until(lambda: gone(model))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_answers_everything(tmp_path, number):
    """As of a terminal, or of a service manager that asks all processes to stop."""
    with running(tmp_path, "--wait-ms", "1500", "--batch-size", "1000") as service, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(predicted, service) for _ in range(8)]
        until(lambda: "ncttt_queue_images 8.0" in requests.get(f"{service.url}/metrics").text)
        for each in below(service.process.pid):
            os.kill(each, number)
        code = service.end(number)
        assert [each.result(SECONDS).status_code for each in asked] == [200] * 8
        assert code == 0
        assert service.log.read_text().count("\n") == 1


def test_metrics_tell_the_memory_of_both_processes(tmp_path):
    with running(tmp_path) as service:
        page = requests.get(f"{service.url}/metrics").text
        lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
        both = (service.process.pid, model_below(service.process.pid))
        pages = [int(Path(f"/proc/{number}/statm").read_text().split()[1]) for number in both]
        bytes_ = sum(pages) * os.sysconf("SC_PAGE_SIZE")
        assert float(lines["process_resident_memory_bytes"]) == pytest.approx(bytes_, rel=0.05)
        assert min(pages) * os.sysconf("SC_PAGE_SIZE") < 0.9 * bytes_
        assert float(lines["process_start_time_seconds"]) < time.time()


def test_what_cannot_be_loaded_is_one_line(tmp_path):
    command = [sys.executable, "-m", "ncttt", "serve", "--model", "no-such-model", "--state", str(tmp_path / "states")]
    done = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no-such-model" in done.stderr


def test_messages_arrive_as_they_were_sent():
    ours, theirs = socket.socketpair()
    pixels = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    ours.sendall(packed(Images(7, "door", pixels, True, 0.5)) + packed(END) + packed("cut")[:-1])
    ours.close()
    with theirs, theirs.makefile("rb") as file:
        told = receive(file)
        assert told[:2] == (7, "door")
        assert np.array_equal(told.images, pixels)
        assert receive(file) is END
        with pytest.raises(EOFError):
            receive(file)
