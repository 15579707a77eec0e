"""The image door: formats that we chose, sizes that we can hold, regular files, any name."""

import csv
import os
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ncttt import InputError
from ncttt.base.errors import printable
from ncttt.data import folder
from ncttt.data.files import finding
from ncttt.data.files.finding import image_files
from ncttt.data.files.image_files import decode, decode_hashed, hash_of, to_rgb

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(x) print\n%%EOF\n"
OTHERS = {"EPS": EPS, "PDF": b"%PDF-1.4\n", "XPM": b"/* XPM */", "text": b"hello", "nothing": b"", "zip": b"PK\x03\x04"}


def picture(path: Path, size: int = 32) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (size, size, 3), np.uint8)).save(path, format="PNG")
    return path


def huge_png(path: Path, side: int, bits: int = 16) -> Path:
    """A small file that claims `side` x `side` grey pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, bits, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x") + chunk(b"IEND", b""))
    return path


@pytest.mark.parametrize("reader", [decode, decode_hashed])
@pytest.mark.parametrize("ending", ["png", "jpg", "tiff"])
@pytest.mark.parametrize("kind", OTHERS)
def test_content_does_not_choose_the_decoder(tmp_path, kind, ending, reader):
    (tmp_path / f"a.{ending}").write_bytes(OTHERS[kind])
    with pytest.raises(InputError, match="cannot be read as an image"):
        reader(tmp_path / f"a.{ending}", 32)


@pytest.mark.parametrize("kind", ["ICO", "PCX", "TGA", "SGI", "DDS", "MSP", "XBM"])
def test_formats_that_nobody_asked_for_are_refused(tmp_path, kind):
    mode = "1" if kind in ("MSP", "XBM") else "RGB"
    Image.new(mode, (32, 32)).save(tmp_path / "a.png", format=kind)
    with pytest.raises(InputError, match="cannot be read as an image"):
        decode(tmp_path / "a.png", 32)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM"])
@pytest.mark.sound
def test_the_usual_formats_are_read_whatever_they_are_called(tmp_path, kind):
    Image.new("RGB", (40, 32), "white").save(tmp_path / "a.png", format=kind)
    assert decode(tmp_path / "a.png", 32).min() >= 254


@pytest.mark.parametrize(("side", "bits"), [(9_434, 16), (13_000, 16), (13_000, 8), (60_000, 1), (2**31 - 1, 8)])
def test_too_many_pixels_are_refused_before_they_are_decoded(tmp_path, side, bits):
    path, began = huge_png(tmp_path / "a.png", side, bits), time.monotonic()
    with pytest.raises(InputError, match=r"a\.png: cannot be read as an image"):
        decode(path, 32)
    assert time.monotonic() - began < 2


@pytest.mark.sound
def test_sixteen_bits_are_rounded_as_before():
    every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    expected = np.round(every.astype(np.float64) / 257).astype(np.uint8)
    assert np.array_equal(np.asarray(to_rgb(Image.fromarray(every)))[:, :, 0], expected)
    odd = Image.fromarray(np.array([[-5, 70_000]], np.int32))
    assert np.asarray(to_rgb(odd))[0, :, 0].tolist() == [0, 255]


def test_pipes_and_devices_are_left_out_with_a_word(tmp_path):
    good = picture(tmp_path / "cat/a.png")
    os.mkfifo(tmp_path / "cat/pipe.png")
    (tmp_path / "cat/zero.png").symlink_to("/dev/zero")
    with pytest.warns(UserWarning, match="left out 2 that are no regular files"):
        assert image_files(tmp_path) == [str(good)]


def test_a_link_that_leads_to_itself_is_told_when_it_is_read(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/loop.png").symlink_to("loop.png")
    (path,) = image_files(tmp_path)
    with pytest.raises(InputError, match=r"loop\.png: cannot be read as an image"):
        decode(Path(path), 32)


@pytest.mark.parametrize("reader", [lambda path: decode(path, 32), lambda path: decode_hashed(path, 32), hash_of])
def test_a_pipe_that_a_list_names_is_an_error(tmp_path, reader):
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="no regular file"):
            reader(path)


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path, monkeypatch):
    picture(tmp_path / "cat/a.png")
    (tmp_path / "cat/closed").mkdir()
    listed = os.scandir

    def scandir(path):
        if str(path).endswith("closed"):  # root, who runs some tests, may list everything
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(finding.os, "scandir", scandir)
    with pytest.raises(InputError, match="closed cannot be listed: Permission denied"):
        folder(tmp_path, image_size=32)


NAMES = [
    b"plain.png",
    b"\xff\xfe.png",
    b"new\nline.png",
    b"\x1b[31mred.png",
    b"[bold]x[-bold].png",
    b"[red]a.png",
    "ä€.png".encode(),
]


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_any_name_of_a_file_works_and_is_shown_escaped(tmp_path, locale):
    images = tmp_path / "images"
    source = picture(tmp_path / "a.png").read_bytes()
    images.mkdir()
    for name in NAMES:
        with open(os.fsencode(images) + b"/" + name, "wb") as file:
            file.write(source)
    with open(os.fsencode(images) + b"/bad\n\xff[x].png", "wb") as file:
        file.write(b"damaged")
    words = [
        "--images",
        str(images),
        "--out",
        str(tmp_path / "out.csv"),
        "--skip-bad",
        "--stop",
        "none",
        "--steps",
        "0",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "ncttt", "adapt", "--model", "digits-small-ncttt", *words],
        env=os.environ | {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert b"\x1b" not in run.stderr
    assert b"Traceback" not in run.stderr
    assert rb"bad\n\udcff[x].png" in run.stderr
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(NAMES)


def test_what_is_printed_cannot_steer_a_terminal():
    text = "a\tb\r\n\x1b]0;title\x07\u202e\udcff\u2028 é"
    assert printable(text) == r"a\tb\r\n\x1b]0;title\x07\u202e\udcff\u2028 é"
