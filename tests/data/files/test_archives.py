"""Archives that are fine, broken or hostile."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ncttt.base.errors import InputError
from ncttt.data.files.archives import unpack


def make_tar(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for info, body in members:
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return path


def regular(name: str, body: bytes) -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), body


def special(name: str, kind: bytes, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, b""


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_tar_is_unpacked(tmp_path, mode):
    archive = make_tar(tmp_path / "a.tar", [regular("set/a.bin", b"one"), regular("set/b/c.bin", b"two")], mode)
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out/set/a.bin").read_bytes() == b"one"
    assert (tmp_path / "out/set/b/c.bin").read_bytes() == b"two"


def test_zip_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.mkdir("set") if hasattr(packed, "mkdir") else None
        packed.writestr("set/a.bin", b"one")
    unpack(tmp_path / "a.zip", tmp_path / "out")
    assert (tmp_path / "out/set/a.bin").read_bytes() == b"one"


@pytest.mark.parametrize("name", ["../evil", "set/../../evil", "/etc/evil", "C:\\evil", "..\\evil"])
def test_paths_that_lead_outside_are_refused(tmp_path, name):
    archive = make_tar(tmp_path / "a.tar.gz", [regular(name, b"x")])
    with pytest.raises(InputError, match="leads outside"):
        unpack(archive, tmp_path / "deep/out")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(name, b"x")
    with pytest.raises(InputError, match="leads outside"):
        unpack(tmp_path / "a.zip", tmp_path / "deep/out")
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    archive = make_tar(tmp_path / "a.tar.gz", [special("set/odd", kind, "/etc/passwd")])
    with pytest.raises(InputError, match=r"'set/odd' is a link or a device"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_links_in_a_zip_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        info = zipfile.ZipInfo("set/odd")
        info.external_attr = 0o120777 << 16
        packed.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match="is a link or a device"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_truncated_tar_is_an_error(tmp_path, mode):
    noise = np.random.default_rng(0).bytes(100_000)
    archive = make_tar(tmp_path / "a.tar", [regular("set/a.bin", noise)], mode)
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(InputError, match=r"a\.tar: truncated"):
        unpack(archive, tmp_path / "out")


def test_a_damaged_zip_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("set/a.bin", b"one" * 1000)
    body = bytearray((tmp_path / "a.zip").read_bytes())
    body[200] ^= 255
    (tmp_path / "a.zip").write_bytes(body)
    with pytest.raises(InputError, match="truncated or not an archive"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_no_archive_at_all(tmp_path):
    (tmp_path / "a.tar").write_text("<html>moved</html>")
    with pytest.raises(InputError, match="not an archive"):
        unpack(tmp_path / "a.tar", tmp_path / "out")


def test_a_member_cannot_replace_another(tmp_path):
    archive = make_tar(tmp_path / "a.tar.gz", [regular("a", b"one"), regular("a", b"two")])
    with pytest.raises(FileExistsError):
        unpack(archive, tmp_path / "out")


def test_a_nul_in_a_path_is_refused(tmp_path):
    info = tarfile.TarInfo("set/a")
    info.pax_headers = {"path": "set/a\0b"}
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    with pytest.raises(InputError, match=r"a\.tar: 'set/a\\x00b' is no sensible path"):
        unpack(archive, tmp_path / "out")


def test_thousands_of_nested_folders_are_refused(tmp_path):
    archive = make_tar(tmp_path / "a.tar", [regular("a/" * 2000 + "b", b"x")])
    with pytest.raises(InputError, match=r"a\.tar: .*is no sensible path"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("place", "value", "reason"), [(6, 1, "encrypted"), (8, 99, "compression")])
def test_a_zip_that_cannot_be_read_says_why(tmp_path, place, value, reason):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("set/a.bin", b"one")
    body = bytearray((tmp_path / "a.zip").read_bytes())
    # The flags and the method stand in the member's header, and two bytes later in the directory at the end.
    body[place] = value
    body[body.index(b"PK\x01\x02") + place + 2] = value
    (tmp_path / "a.zip").write_bytes(body)
    with pytest.raises(InputError, match=rf"a\.zip: .*{reason}"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_a_damaged_gzip_stream_is_the_archives_fault(tmp_path):
    plain = make_tar(tmp_path / "plain.tar", [regular("set/a.bin", bytes(100_000))], "w").read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(plain[:50_000]) + b"something else")
    with pytest.raises(InputError, match=r"a\.tar\.gz: truncated or not an archive"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")
