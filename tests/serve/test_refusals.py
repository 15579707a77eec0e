"""Malformed requests: each is answered with a 4xx and one sentence, and the service stays up."""

import base64
import gzip
import io
import json
import random
import struct
import zlib

import pytest
from PIL import Image
from service import HERE, client_of, digits, png, text
from starlette.testclient import TestClient

from ncttt import InputError
from ncttt.serve import Settings, create_app
from ncttt.serve.access import is_loopback
from ncttt.serve.running import run_service

GOOD = text(digits("clean")[0])
BOUNDARY = {"content-type": "multipart/form-data; boundary=x"}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_of(tmp_path_factory.mktemp("refusals"), most_bytes=200_000, most_pixels=1_000_000) as client:
        yield client


def bomb(width: int, height: int) -> bytes:
    """A PNG of so many pixels in few bytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * (width // 8 + 1) * min(height, 2000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def form(*parts: tuple[str, bytes]) -> bytes:
    """A multipart body of parts with these headers."""
    return b"".join(b"--x\r\n" + head.encode() + b"\r\n\r\n" + body + b"\r\n" for head, body in parts) + b"--x--\r\n"


FILE = 'Content-Disposition: form-data; name="image"; filename="a.png"'
STREAM = 'Content-Disposition: form-data; name="stream"'
PNG = png(digits("clean")[0])
JSON_BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"3",
    b'"x"',
    b"{}",
    b"\xff\xfe",
    b'{"images": []}',
    b'{"images": null}',
    b'{"images": "x"}',
    b'{"images": [1]}',
    b'{"images": [null]}',
    b'{"images": [""]}',
    b'{"images": ["%%%"]}',
    b'{"images": ["aGVsbG8="]}',
    b'{"images": {"a": 1}}',
    b"[" * 100_000,
    b'{"images": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    json.dumps({"images": [GOOD] * 129}).encode(),
    json.dumps({"images": [GOOD], "more": 1}).encode(),
    json.dumps({"images": [GOOD[:-400]]}).encode(),
    json.dumps({"images": [GOOD], "probabilities": "yes"}).encode(),
    json.dumps({"images": [GOOD], "probabilities": 1}).encode(),
    *(
        json.dumps({"images": [GOOD], "stream": name}).encode()
        for name in ("", ".", "..", "../up", "a/b", "a\\b", "a\0b", "é", "x" * 65, " a", "a\n", "-a", 3, None, ["a"])
    ),
    json.dumps({"images": [base64.b64encode(bomb(50_000, 50_000)).decode()]}).encode(),
    json.dumps({"images": [base64.b64encode(bomb(1001, 1000)).decode()]}).encode(),
    json.dumps({"images": ["A" * 300_000]}).encode(),
]
FORMS = [
    b"",
    b"--x",
    b"--x--\r\n",
    b"--y\r\n\r\n--y--",
    b"\0" * 500,
    form((FILE, b"")),
    form((FILE, b"no image")),
    form((FILE, PNG[:-30])),
    form((FILE, PNG[:40])),
    form((FILE, b"\x89PNG\r\n\x1a\n")),
    form((FILE, b"GIF89a")),
    form((FILE, b"II*\0" + b"\xff" * 60)),
    form((FILE, b"BM" + b"\xff" * 60)),
    form((FILE, b"\xff\xd8\xff\xe0" + b"\0" * 60)),
    form((FILE, b"RIFF\0\0\0\0WEBPVP8 ")),
    form((FILE, b"P6 999999 999999 255\n")),
    form((FILE, b"<svg xmlns='http://www.w3.org/2000/svg'/>")),
    form((FILE, b"%PDF-1.4")),
    form((FILE, bomb(60_000, 60_000))),
    form((FILE, bomb(1_000_000, 2))),
    form((STREAM, b"a")),
    form((STREAM, b"../a"), (FILE, PNG)),
    form((STREAM, b"\xff\xff"), (FILE, PNG)),
    form((STREAM, b"x" * 5000), (FILE, PNG)),
    form(('Content-Disposition: form-data; name="other"', b"1"), (FILE, PNG)),
    form(('Content-Disposition: form-data; name="shift"', b"maybe"), (FILE, PNG)),
    form(("Content-Disposition: form-data", PNG)),
    form(("X: y", PNG)),
    form(*[(FILE, PNG)] * 129),
    form(*[(STREAM, b"a")] * 20),
    form((FILE, PNG), (FILE, b"second is none")),
    form((FILE, b"x" * 300_000)),
    form((STREAM, b"a"), (STREAM, b"b"), (FILE, PNG)),
    form((FILE, PNG))[:-6],
    b"before " + form((FILE, PNG)),
    form((FILE + "\r\nX: " + "y" * 5000, PNG)),
    form(("Content-Disposition: attachment; name=image; filename=a", PNG)),
    b"--x" + b"\r\n--x" * 40_000,
    form((f"{FILE}\r\nContent-Type: text/plain; charset=\xff", b"1")),
]
OTHERS = [
    ("POST", "/predict", {}, PNG),
    ("POST", "/predict", {"content-type": "image/png"}, PNG),
    ("POST", "/predict", {"content-type": "multipart/form-data"}, PNG),
    ("POST", "/predict", {"content-type": "multipart/form-data; boundary="}, PNG),
    ("POST", "/predict", {"content-type": "multipart/form-data; boundary=" + "y" * 500}, PNG),
    ("POST", "/predict", {"content-type": "text/plain"}, b"hello"),
    ("POST", "/predict", {**JSON, "content-length": "99999999999999999999999"}, b"{}"),
    ("POST", "/predict", {**BOUNDARY, "content-encoding": "gzip"}, gzip.compress(form((FILE, PNG)))),
    ("GET", "/predict", {}, b""),
    ("PUT", "/predict", JSON, b"{}"),
    ("GET", "/nowhere", {}, b""),
    ("POST", "/feedback", JSON, b""),
    ("POST", "/feedback", JSON, b"{}"),
    ("POST", "/feedback", JSON, b'{"labels": []}'),
    ("POST", "/feedback", JSON, b'{"labels": [{"id": 1, "label": "3"}]}'),
    ("POST", "/feedback", JSON, b'{"labels": [{"id": "a", "label": 3}]}'),
    ("POST", "/feedback", JSON, b'{"labels": [{"id": "a", "label": "no class"}]}'),
    ("GET", "/streams/unknown", {}, b""),
    ("GET", "/streams/..%2f..%2fetc", {}, b""),
    ("GET", "/streams/%00", {}, b""),
    ("GET", "/streams/" + "x" * 200, {}, b""),
    ("GET", "/streams?first=-1", {}, b""),
    ("GET", "/streams?most=0", {}, b""),
    ("GET", "/streams?most=many", {}, b""),
    ("DELETE", "/streams/unknown", {}, b""),
    ("POST", "/streams/unknown/freeze", {}, b""),
    ("POST", "/streams/unknown/thaw", {}, b""),
    ("POST", "/streams/unknown/reset", {}, b""),
    ("POST", "/streams/unknown/roll-back", JSON, b'{"version": 1}'),
    ("POST", "/streams/default/roll-back", JSON, b'{"version": 999}'),
    ("POST", "/streams/default/roll-back", JSON, b'{"version": -1}'),
    ("POST", "/streams/default/roll-back", JSON, b'{"version": 1e400}'),
    ("POST", "/streams/default/roll-back", JSON, b'{"version": "1"}'),
    ("POST", "/streams/default/roll-back", JSON, b"{}"),
]


def scrambled() -> list[tuple[str, str, dict[str, str], bytes]]:
    """Good images with bytes of their first half torn out, which no decoder can take for whole."""
    random_ = random.Random(0)
    bodies = []
    for kind in ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP"):
        buffer = io.BytesIO()
        Image.fromarray(digits("clean")[0]).save(buffer, kind)
        for _ in range(16):
            content = buffer.getvalue()
            cut = random_.randrange(1, 30)
            bodies.append(("POST", "/predict", BOUNDARY, form((FILE, content[cut:]))))
    return bodies


BODIES = [
    *(("POST", "/predict", JSON, body) for body in JSON_BODIES),
    *(("POST", "/predict", BOUNDARY, body) for body in FORMS),
    *OTHERS,
    *scrambled(),
]


def test_two_hundred_malformed_requests_are_refused_with_a_sentence(client):
    assert len(BODIES) >= 200
    assert client.post("/predict", json={"images": [GOOD]}).status_code == 200  # so that there is a stream
    for verb, path, headers, body in BODIES:
        answer = client.request(verb, path, headers=headers, content=body)
        assert 400 <= answer.status_code < 500, (path, body[:80], body[-80:], answer.status_code, answer.text)
        detail = answer.json()["detail"]
        assert isinstance(detail, str)
        assert 0 < len(detail) <= 1000
        assert "\n" not in detail
        assert "Traceback" not in detail
    assert client.get("/healthz").status_code == 200
    assert client.post("/predict", json={"images": [GOOD]}).status_code == 200


def test_a_refusal_names_the_image(client):
    body = form((FILE, PNG), ('Content-Disposition: form-data; name="b"; filename="broken.png"', b"x"))
    detail = client.post("/predict", headers=BOUNDARY, content=body).json()["detail"]
    assert detail.startswith("image 2 (broken.png): cannot be read as an image")


def test_limits_have_their_own_status(client):
    assert client.post("/predict", headers=JSON, content=b"[" * 250_000).status_code == 413
    assert client.post("/predict", headers={"content-type": "image/png"}, content=PNG).status_code == 415

    def pieces():
        for _ in range(300):
            yield b"x" * 1000

    assert client.post("/predict", headers=JSON, content=pieces()).status_code == 413  # without a declared length


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with client_of(tmp_path_factory.mktemp("token"), token="secret") as client:
        yield client


def test_a_token_is_asked_for(guarded):
    assert guarded.get("/about").status_code == 401
    assert guarded.get("/metrics").status_code == 401
    assert guarded.get("/about", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert guarded.get("/about", headers={"authorization": "Bearer secret"}).status_code == 200
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/readyz").status_code == 200


def test_pages_of_other_sites_and_other_names_are_refused(client):
    assert client.get("/about", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/about", headers={"origin": HERE}).status_code == 200
    assert client.get("/about", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/about", headers={"host": "localhost:8000"}).status_code == 200


def test_an_address_that_others_can_reach_needs_a_token(tmp_path, monkeypatch):
    monkeypatch.delenv("NCTTT_TOKEN", raising=False)
    settings = Settings(model="digits-small-ncttt", state=str(tmp_path / "s"))
    with pytest.raises(InputError, match="NCTTT_TOKEN"):
        run_service(settings, host="0.0.0.0")
    assert not is_loopback("example.org")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"wait_ms": -1.0}, "wait_ms"),
        ({"budget_ms": 0.0}, "budget_ms"),
        ({"hot_streams": 5, "most_streams": 4}, "most_streams"),
        ({"most_waiting": 3, "most_images": 4}, "most_waiting"),
        ({"most_reading": 3, "most_bytes": 4}, "most_reading"),
        ({"model": "no-such-model"}, "no-such-model"),
        ({"method": "no_such"}, "no_such"),
        ({"protocol": "sometimes"}, "sometimes"),
        ({"settings": {"nothing": 1}}, "nothing"),
        ({"device": "moon"}, "moon"),
        ({"monitor": "no-such-file"}, "no-such-file"),
    ],
)
def test_wrong_settings_are_one_error(tmp_path, wrong, named):
    with pytest.raises(InputError, match=named):
        create_app(Settings(**{"model": "digits-small-ncttt", "state": str(tmp_path / "s"), **wrong}))


def test_an_error_inside_is_500_and_the_next_request_is_answered(tmp_path):
    with client_of(tmp_path) as client:
        assert isinstance(client, TestClient)
        served = client.app.state.worker.served
        adapter = served.adapter

        def broken():
            raise RuntimeError("a bug")

        served.adapter = broken
        assert client.post("/predict", json={"images": [GOOD]}).status_code == 500
        served.adapter = adapter
        assert client.post("/predict", json={"images": [GOOD]}).status_code == 200


def test_a_form_may_begin_with_a_line_and_pad_its_boundaries(client):
    head = b'--x \t\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
    body = b"\r\n" + head + png(digits()[0]) + b"\r\n--x--\r\n"
    answer = client.post("/predict", content=body, headers={"content-type": "multipart/form-data; boundary=x"})
    assert answer.status_code == 200, answer.text
