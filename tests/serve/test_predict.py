"""Predictions over HTTP: those of the library, with what is known about them."""

import numpy as np
import pytest
import torch
from service import MODEL, client_of, digits, labels, png, predict, settings_in, text

import ncttt
from ncttt.adapt.small_batches import ENOUGH
from ncttt.serve import create_app
from ncttt.serve.snapshots import Snapshots

pytestmark = pytest.mark.filterwarnings("ignore::ncttt.adapt.SmallBatchWarning")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_of(tmp_path_factory.mktemp("predict")) as client:
        yield client


def tensor(pixels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pixels.copy()).permute(0, 3, 1, 2).float().div(255)


def test_answers_are_those_of_an_adapter_and_of_the_source_model(client):
    model = ncttt.load(MODEL)
    method = ncttt.NCTTT(**{**vars(model.method), "gather": ENOUGH})
    adapter = ncttt.Adapter(model, method, protocol="online", stop="source", on_collapse="reset")
    for size in (1, 3, 64, 1):
        pixels = digits()[:size]
        answer = predict(client, pixels, "same", probabilities="true")
        expected, source = adapter(tensor(pixels)).softmax(1), model(tensor(pixels)).softmax(1)
        rows = answer["predictions"]
        assert np.allclose([row["probabilities"] for row in rows], expected.numpy(), atol=1e-6)
        assert np.allclose([row["source_probabilities"] for row in rows], source.detach().numpy(), atol=1e-5)
        assert [row["label"] for row in rows] == [str(number) for number in expected.argmax(1).tolist()]
        assert answer["batch"]["stopped"] == adapter.trace.stopped


def test_a_form_and_json_are_the_same_to_it(client):
    form = predict(client, digits()[:4], "form")
    body = {"images": [text(image) for image in digits()[:4]], "stream": "json"}
    told = client.post("/predict", json=body).json()
    for one, other in zip(form["predictions"], told["predictions"], strict=True):
        assert {**one, "id": ""} == {**other, "id": ""}


def test_an_answer_says_what_was_done(client):
    clean = predict(client, digits("clean")[:64], "clean")
    assert clean["outcome"] == "left to source"
    assert not clean["drift"]["alarm"]
    shifted = predict(client, digits()[:64], "shifted")
    assert shifted["outcome"] == "adapted"
    assert shifted["drift"]["alarm"]
    assert shifted["drift"]["score"] > 2 > clean["drift"]["score"]
    single = predict(client, digits()[64:65], "shifted")
    assert single["outcome"] == "too small a batch"
    assert single["version"] == shifted["version"] + 1
    assert single["saved"] <= single["version"]
    assert single["milliseconds"]["total"] >= single["milliseconds"]["model"] > 0


def test_probabilities_and_shift_only_on_demand(client):
    plain = predict(client, digits()[:2], "wishes")["predictions"][0]
    assert plain["probabilities"] is None
    assert plain["shift"] is None
    asked = predict(client, digits()[:2], "wishes", probabilities="true", shift="true")["predictions"][0]
    assert sum(asked["probabilities"]) == pytest.approx(1, abs=1e-5)
    assert 0 <= asked["shift"] <= 1


def test_images_of_any_size_and_format(client):
    from io import BytesIO

    from PIL import Image

    for mode, size, kind in (("L", (50, 40), "JPEG"), ("RGBA", (7, 9), "PNG"), ("P", (32, 32), "GIF")):
        buffer = BytesIO()
        Image.new(mode, size).save(buffer, kind)
        answer = client.post("/predict", files={"image": ("x", buffer.getvalue())})
        assert answer.status_code == 200, answer.text


def test_labels_that_come_later_score_both_models(client):
    answer = predict(client, digits()[:64], "scored")
    given = [
        {"id": row["id"], "label": str(label)}
        for row, label in zip(answer["predictions"], labels()[:64].tolist(), strict=True)
    ]
    told = client.post("/feedback", json={"labels": [*given, {"id": "nobody", "label": "3"}]}).json()
    assert told["unknown"] == ["nobody"]
    (score,) = told["scores"]
    rows = answer["predictions"]
    right = np.mean([row["label"] == one["label"] for row, one in zip(rows, given, strict=True)])
    before = np.mean([row["source_label"] == one["label"] for row, one in zip(rows, given, strict=True)])
    assert score == {"stream": "scored", "labels": 64, "adapted_accuracy": right, "source_accuracy": before}
    assert right > before
    again = client.post("/feedback", json={"labels": given[:1]}).json()
    assert again["unknown"] == [given[0]["id"]]  # a label counts once
    wrong = client.post("/feedback", json={"labels": [{"id": "x", "label": "cat"}]})
    assert wrong.status_code == 422
    assert "no class 'cat'" in wrong.json()["detail"]


def test_operators_have_streams_in_hand(client):
    first = predict(client, digits()[:64], "hand")
    assert client.post("/streams/hand/freeze").json()["frozen"]
    frozen = predict(client, digits()[:64], "hand")
    assert frozen["outcome"] == "frozen"
    assert frozen["version"] == first["version"] + 1  # that of the freezing
    assert predict(client, digits()[:64], "hand")["version"] == frozen["version"]
    client.post("/streams/hand/thaw")
    facts = client.post("/streams/hand/reset").json()
    back = client.post("/streams/hand/roll-back", json={"version": facts["versions"][0]}).json()
    assert back["version"] == facts["version"] + 1
    assert client.get("/streams/hand").json() == back
    listed = client.get("/streams", params={"most": 1000}).json()
    assert "hand" in [stream["name"] for stream in listed["streams"]]
    assert len(listed["streams"]) == listed["total"]
    assert client.delete("/streams/hand").status_code == 204
    assert client.get("/streams/hand").status_code == 404


def test_metrics_tell_what_happened(client):
    predict(client, digits("clean")[:64], "counted")
    predict(client, digits()[:64], "counted")
    client.get("/no/such/place")
    text = client.get("/metrics").text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines['ncttt_images_total{stream="counted"}']) == 128
    assert float(lines['ncttt_batches_total{outcome="left to source",stream="counted"}']) == 1
    assert float(lines['ncttt_batches_total{outcome="adapted",stream="counted"}']) == 1
    assert float(lines['ncttt_agreements_total{stream="counted"}']) < 128
    assert float(lines['ncttt_drift_score{stream="counted"}']) > 2
    assert float(lines['ncttt_entropy_count{stream="counted"}']) == 128
    shares = [
        float(value)
        for name, value in lines.items()
        if name.startswith("ncttt_predictions_total{") and "counted" in name
    ]
    assert sum(shares) == 128
    assert float(lines['ncttt_requests_total{route="other",status="404"}']) >= 1
    for name in ("queue_images", "waiting_seconds_count", "model_seconds_count", "batch_images_count", "steps_total"):
        assert any(line.startswith(f"ncttt_{name}") for line in lines), name
    client.delete("/streams/counted")
    assert 'stream="counted"' not in client.get("/metrics").text


def test_health_and_description(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    about = client.get("/about").json()
    assert (about["model"], about["protocol"], about["size"]) == (MODEL, "online", 32)
    described = client.get("/openapi.json").json()
    contents = described["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert contents.keys() == {"multipart/form-data", "application/json"}
    example = contents["application/json"]["example"]
    assert client.post("/predict", json=example).status_code == 200


def test_the_episodic_protocol_keeps_nothing(tmp_path):
    with client_of(tmp_path, protocol="episodic") as client:
        first = predict(client, digits()[:64], probabilities="true")
        predict(client, digits("clean")[:64])
        again = predict(client, digits()[:64], probabilities="true")
        rows = [[row["probabilities"] for row in answer["predictions"]] for answer in (first, again)]
        assert rows[0] == rows[1]
        assert (again["version"], again["saved"]) == (0, 0)
        refused = client.post("/streams/default/reset")
        assert refused.status_code == 422
        assert "keeps no state" in refused.json()["detail"]
    assert not (tmp_path / "states").exists()


def test_a_budget_takes_fewer_steps_and_says_so(tmp_path):
    hard = {"stop": "none", "steps": 50, "settings": {"gather": 0}}
    with client_of(tmp_path, budget_ms=60.0, **hard) as client:
        counts = [predict(client, digits()[:64])["batch"] for _ in range(6)]
        skipped = next(
            line for line in client.get("/metrics").text.splitlines() if line.startswith("ncttt_skipped_steps_total")
        )
    assert counts[0]["steps"] == 50  # nobody knows yet how long a step takes
    assert counts[-1]["steps"] == counts[-1]["steps_allowed"] < 50
    assert float(skipped.rsplit(" ", 1)[1]) == sum(50 - count["steps_allowed"] for count in counts)


def test_every_version_is_on_disk_before_its_answer(tmp_path):
    with client_of(tmp_path, save_seconds=0.0) as client:
        for _ in range(3):
            answer = predict(client, digits()[:2])
            assert answer["saved"] == answer["version"]


def test_a_stream_goes_on_after_a_restart(tmp_path):
    with client_of(tmp_path) as client:
        version = predict(client, digits()[:64])["version"]
        client.post("/streams/default/freeze")
    with client_of(tmp_path) as client:
        answer = predict(client, digits()[:1])
        assert answer["version"] == version + 1
        assert answer["outcome"] == "frozen"


def test_a_monitor_gives_the_drift(tmp_path):
    with client_of(tmp_path, monitor="digits") as client:
        assert not predict(client, digits("clean")[:128])["drift"]["alarm"]
        drift = predict(client, digits()[:128])["drift"]
        assert drift["alarm"]
        assert drift["images"] == 128


@pytest.mark.parametrize("monitor", [None, "digits"])
def test_an_alarm_outlives_a_restart(tmp_path, monitor):
    with client_of(tmp_path, monitor=monitor) as client:
        before = predict(client, digits()[:64])["drift"]
        assert before["alarm"]
    with client_of(tmp_path, monitor=monitor) as client:
        after = predict(client, digits("clean")[:8])["drift"]
        assert after["alarm"]  # of 8 new clean images and 56 old ones, or as many as a monitor keeps
        assert after["images"] == (64 if monitor is None else 72)
    with client_of(tmp_path, monitor="digits" if monitor is None else None) as client:  # another watcher begins anew
        assert predict(client, digits("clean")[:8])["drift"]["images"] == 8


def test_a_snapshot_without_a_window_is_taken(tmp_path):
    with client_of(tmp_path) as client:
        predict(client, digits()[:64])
    store = Snapshots(tmp_path / "states", 8)
    (version,) = store.versions("default")
    facts, state = store.read("default", version)
    assert state.pop("drift")
    store.write(facts, state)
    with client_of(tmp_path) as client:
        answer = predict(client, digits()[:8])
    assert answer["version"] == version + 1
    assert answer["drift"]["images"] == 8


def test_a_model_without_certainty_is_served_with_care(tmp_path):
    """Its single images are normalised by the statistics of the stream, not by their own."""
    model = ncttt.load(MODEL)
    model.source_certainty.fill_(-1)
    ncttt.save(model, tmp_path / "model")
    with client_of(tmp_path, model=str(tmp_path / "model")) as client:
        right = 0
        for image, label in zip(digits("clean")[:40], labels()[:40].tolist(), strict=True):
            answer = predict(client, image[None])
            right += answer["predictions"][0]["label"] == str(label)
        assert answer["drift"] is None
        assert right >= 34
        refused = client.app.state.worker.served.stop
    assert refused is None
    with pytest.raises(ncttt.InputError, match="--stop"):
        create_app(settings_in(tmp_path, model=str(tmp_path / "model"), stop="source"))


def test_a_full_queue_is_429(tmp_path):
    with client_of(tmp_path, most_waiting=2, most_images=2, wait_ms=0.0) as client:
        assert client.post("/predict", files=[("image", ("x", png(digits()[0])))] * 3).status_code in (400, 422)
        worker = client.app.state.worker
        worker.queue._most = 0
        answer = client.post("/predict", files={"image": png(digits()[0])})
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"


def test_the_episodic_protocol_has_a_bounded_number_of_series(tmp_path):
    with client_of(tmp_path, protocol="episodic", hot_streams=2) as client:
        for number in range(5):
            predict(client, digits()[:1], f"door-{number}")
        page = client.get("/metrics").text
        assert {name for name in map("door-{}".format, range(5)) if f'"{name}"' in page} == {"door-3", "door-4"}


def test_late_labels_bring_no_series_back(client):
    (row,) = predict(client, digits()[:1], "gone")["predictions"]
    assert client.delete("/streams/gone").status_code == 204
    answer = client.post("/feedback", json={"labels": [{"id": row["id"], "label": "1"}]})
    assert answer.json()["scores"][0]["labels"] == 1
    assert '"gone"' not in client.get("/metrics").text


def test_refusals_are_counted(tmp_path):
    with client_of(tmp_path, token="word") as client:
        assert client.get("/streams").status_code == 401
        assert client.get("/streams", headers={"origin": "http://elsewhere"}).status_code == 403
        page = client.get("/metrics", headers={"authorization": "Bearer word"}).text
        assert 'status="401"} 1.0' in page
        assert 'status="403"} 1.0' in page


@pytest.mark.parametrize("headers", [{"origin": "http://["}, {"host": "["}, {"host": "127.0.0.1:x["}])
def test_malformed_addresses_are_refused(client, headers):
    answer = client.get("/streams", headers=headers)
    assert answer.status_code == 403, answer.text
