"""Downloads and archives of strangers: only over HTTPS, only what was there before, never more than they may hold."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import shutil
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_server import Server
from ncttt.base.errors import InputError, Unreachable
from ncttt.cli import main
from ncttt.data import DATA_SETS, Download, get
from ncttt.data.files import archives
from ncttt.data.files.archives import unpack
from ncttt.data.files.download import download

MEBIBYTE = 1 << 20


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def secure(tmp_path_factory, monkeypatch) -> Iterator[Server]:
    """A server with a certificate that this process trusts."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    certificate = tmp_path_factory.mktemp("tls") / "here.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*command, "-keyout", certificate, "-out", certificate.with_suffix(".crt")], check=True, timeout=60)
    certificate.write_bytes(certificate.read_bytes() + certificate.with_suffix(".crt").read_bytes())
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.with_suffix(".crt")))
    running = Server(certificate)
    yield running
    running.close()


@pytest.mark.sound
def test_every_home_is_asked_by_https():
    assert all(item.url.startswith("https://") for facts in DATA_SETS.values() for item in facts.downloads)


@pytest.mark.parametrize(
    "address",
    [
        "http://example.invalid/set.bin",
        "HTTP://EXAMPLE.INVALID/set.bin",
        "http://127.0.0.1.example.invalid/set.bin",
        "http://localhost.example.invalid/set.bin",
        "http://127.0.0.1@example.invalid/set.bin",
        "http://10.0.0.1/set.bin",
        "http://[::2]/set.bin",
    ],
)
def test_plain_http_is_refused_but_on_this_machine(address, tmp_path):
    with pytest.raises(Unreachable, match="only https is fetched"):
        download(address, tmp_path / "set.bin", None, wait=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["ftp://example.invalid/a", "file:///etc/passwd", "gopher://a/b", "no address", ""])
def test_other_addresses_are_refused(address, tmp_path):
    with pytest.raises(InputError):
        download(address, tmp_path / "set.bin", None, wait=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["http://example.invalid/set.bin", "file:///etc/passwd", "ftp://example.invalid/a"])
def test_a_redirect_to_anything_but_https_is_refused(server, place, tmp_path):
    server.elsewhere["set.bin"] = place
    with pytest.raises(Unreachable):
        download(server.url("set.bin"), tmp_path / "set.bin", None, wait=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sound
def test_a_redirect_on_this_machine_is_followed(server, tmp_path):
    server.elsewhere["set.bin"], server.files["other.bin"] = server.url("other.bin"), b"here"
    assert download(server.url("set.bin"), tmp_path / "set.bin", None).read_bytes() == b"here"


def test_https_is_fetched_and_never_left_for_http(secure, server, tmp_path):
    secure.files["set.bin"] = server.files["set.bin"] = b"safe"
    assert download(secure.url("set.bin"), tmp_path / "set.bin", None).read_bytes() == b"safe"
    secure.elsewhere["moved.bin"] = server.url("set.bin")
    with pytest.raises(Unreachable, match="only https is fetched"):
        download(secure.url("moved.bin"), tmp_path / "moved.bin", None, wait=0)
    assert server.asked == []


def test_a_certificate_that_nobody_vouches_for_is_refused(secure, tmp_path, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    secure.files["set.bin"] = b"anybody's"
    with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        download(secure.url("set.bin"), tmp_path / "set.bin", None, wait=0)


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return buffer.getvalue()


FIRST, OTHER = ({"train/image_list.txt": b"bus/1.png 2\n", "train/bus/1.png": body} for body in (b"first", b"other"))


@pytest.fixture
def visda(server, monkeypatch) -> Server:
    """A home that publishes no checksums."""
    server.files["train.tar"] = packed(FIRST)
    monkeypatch.setattr(DATA_SETS["visda-c"], "downloads", (Download(server.url("train.tar"), None, "train"),))
    return server


def fetched_again(root: Path) -> Path:
    shutil.rmtree(root / "visda-c")
    return get("visda-c", root)


@pytest.mark.sound
def test_the_checksum_of_a_first_fetch_is_kept_and_told(visda, tmp_path):
    told = []
    get("visda-c", tmp_path, say=told.append)
    kept = tmp_path / "visda-c.checksums.json"
    digest = hashlib.sha256(visda.files["train.tar"]).hexdigest()
    assert json.loads(kept.read_text()) == {visda.url("train.tar"): f"sha256:{digest}"}
    assert [line for line in told if "publishes no checksum" in line and str(kept) in line]
    assert (fetched_again(tmp_path) / "train/bus/1.png").read_bytes() == b"first"


def test_a_later_fetch_that_differs_is_refused(visda, tmp_path):
    get("visda-c", tmp_path)
    visda.files["train.tar"] = packed(OTHER)
    with pytest.raises(InputError, match=r"not the file that was fetched first.*visda-c\.checksums\.json"):
        fetched_again(tmp_path)
    assert not (tmp_path / "visda-c/train").exists()
    (tmp_path / "visda-c.checksums.json").unlink()
    assert (get("visda-c", tmp_path) / "train/bus/1.png").read_bytes() == b"other"


def test_what_was_never_the_set_leaves_no_checksum(visda, tmp_path):
    visda.files["train.tar"] = b"<html>moved</html>"
    with pytest.raises(InputError, match="not an archive"):
        get("visda-c", tmp_path)
    assert not list(tmp_path.glob("*.json"))


DAMAGE = [b"", b"{", b"[]", b"3", b"\xff", b'{"a": 3}', b'{"a": "md5:0"}', b'{"a": "sha256:x"}', b"[" * 100_000]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda content: repr(content[:12]))
def test_damaged_checksums_are_named(visda, damage, tmp_path, capsys, monkeypatch):
    (tmp_path / "visda-c.checksums.json").write_bytes(damage)
    assert main(["data", "get", "visda-c", "--root", str(tmp_path)]) == 2
    assert "visda-c.checksums.json" in capsys.readouterr().err.splitlines()[-1]
    assert visda.asked == []


@pytest.fixture
def small_limits(monkeypatch) -> None:
    """Bombs of some megabytes, so that the tests are quick."""
    monkeypatch.setattr(archives, "SLACK", 4 * MEBIBYTE)


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "out"


def written(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def assert_refused(archive: Path, target: Path, reason: str = "unpacks to more than") -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=reason):
            unpack(archive, target)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * MEBIBYTE
    assert written(target) <= archives.SLACK + archives.RATIO * archive.stat().st_size


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_a_packed_tar_that_swells_is_refused(pack, small_limits, tmp_path, target):
    (tmp_path / "a.tar").write_bytes(pack(packed({"set/a": bytes(32 * MEBIBYTE)})))
    assert_refused(tmp_path / "a.tar", target)


def test_a_zip_that_swells_is_refused(small_limits, tmp_path, target):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("set/a", bytes(32 * MEBIBYTE))
    assert_refused(tmp_path / "a.zip", target)


def test_a_zip_that_lies_about_its_size_is_refused(small_limits, tmp_path, target):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("set/a", bytes(32 * MEBIBYTE))
    content = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(content.replace(struct.pack("<I", 32 * MEBIBYTE), struct.pack("<I", 10)))
    assert_refused(tmp_path / "a.zip", target, "unpacks to more than|truncated or not an archive")


def test_many_members_that_share_their_bytes_are_refused(small_limits, tmp_path, target):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("set/a", bytes(MEBIBYTE))
        (whole,) = file.infolist()
        for number in range(50):
            again = zipfile.ZipInfo(f"set/{number}")
            for name in ("header_offset", "compress_size", "file_size", "CRC", "compress_type", "flag_bits"):
                setattr(again, name, getattr(whole, name))
            file.filelist.append(again)
            file.NameToInfo[again.filename] = again
    with pytest.raises(InputError):
        unpack(tmp_path / "a.zip", target)
    assert written(target) <= 6 * MEBIBYTE


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_countless_empty_members_are_refused(kind, small_limits, tmp_path, target):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for number in range(5000):
            info = tarfile.TarInfo(f"set/{number}")
            info.type = kind
            tar.addfile(info)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(buffer.getvalue()))
    assert_refused(tmp_path / "a.tar.gz", target)


@pytest.mark.parametrize("version", ["0.0", "0.1", "1.0"])
def test_a_sparse_file_is_refused(version, tmp_path, target):
    info = tarfile.TarInfo("set/a")
    size = {"GNU.sparse.size": str(1 << 50), "GNU.sparse.realsize": str(1 << 50), "GNU.sparse.name": "set/a"}
    maps = {
        "0.0": {"GNU.sparse.numblocks": "1", "GNU.sparse.offset": "0", "GNU.sparse.numbytes": "0"},
        "0.1": {"GNU.sparse.map": "0,0"},
        "1.0": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
    }
    info.pax_headers = size | maps[version]
    body = b"1\n0\n0\n".ljust(512, b"\0") if version == "1.0" else b""
    info.size = len(body)
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(body))
    assert_refused(tmp_path / "a.tar", target, "sparse file")


def test_an_old_sparse_file_is_refused(tmp_path, target):
    info = tarfile.TarInfo("set/a")
    info.type = tarfile.GNUTYPE_SPARSE
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    assert_refused(tmp_path / "a.tar", target, "sparse file")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
@pytest.mark.parametrize("first", [True, False])
def test_a_header_that_fills_the_memory_is_refused(kind, first, tmp_path, target):
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, 64 * MEBIBYTE
    before = b"" if first else packed({"set/a": b"fine"})[:1024]
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(before + info.tobuf() + bytes(info.size)))
    assert_refused(tmp_path / "a.tar.gz", target, f"a header of {info.size} bytes")


def test_no_more_is_unpacked_than_the_disk_holds(tmp_path, target, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=MEBIBYTE)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    (tmp_path / "a.tar").write_bytes(packed({"set/a": bytes(2 * MEBIBYTE)}))
    assert_refused(tmp_path / "a.tar", target, "1.0 MiB that are free on the disk")


def test_a_bomb_leaves_nothing_of_itself(visda, small_limits, tmp_path, capsys):
    visda.files["train.tar"] = gzip.compress(packed({"train/a": bytes(32 * MEBIBYTE)}))
    assert main(["data", "get", "visda-c", "--root", str(tmp_path)]) == 2
    assert "unpacks to more than" in capsys.readouterr().err.splitlines()[-1]
    assert [path.name for path in tmp_path.rglob("*")] == ["visda-c"]


@pytest.mark.sound
def test_what_swells_a_little_is_unpacked(tmp_path, target):
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(packed({"set/a": bytes(32 * MEBIBYTE)})))
    unpack(tmp_path / "a.tar.gz", target)
    assert written(target) == 32 * MEBIBYTE
