"""`ncttt data` as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ncttt.base.errors import InputError
from ncttt.cli import main
from ncttt.data import load
from ncttt.data.corrupting import DECODED, decoded, parse_severities
from ncttt.data.corruptions import CORRUPTIONS, EXTRA


def test_list_shows_every_set_and_what_is_there(tmp_path, capsys):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name in ("train", "test", "meta"):
        (folder / name).touch()
    assert main(["data", "list", "--root", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    present = [name for name, facts in found["sets"].items() if facts["present"]]
    assert present == ["digits", "cifar100"]
    assert found["root"] == str(tmp_path)
    assert main(["data", "list", "--root", str(tmp_path)]) == 0
    assert "visda-c" in capsys.readouterr().out


def test_the_root_may_come_from_the_environment(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NCTTT_DATA", str(tmp_path / "from the environment"))
    main(["data", "list", "--json"])
    assert json.loads(capsys.readouterr().out)["root"] == str(tmp_path / "from the environment")
    monkeypatch.delenv("NCTTT_DATA")
    main(["data", "list", "--json"])
    assert json.loads(capsys.readouterr().out)["root"].endswith("ncttt")


def test_check_names_what_is_wrong_and_exits_with_2(tmp_path, capsys):
    (tmp_path / "cifar-10-batches-bin").mkdir()
    assert main(["data", "check", "cifar10", "--root", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "test_batch.bin: missing" in out
    assert err == "ncttt: cifar10: 6 of 6 checks failed\n"


def test_the_python_version_of_cifar10_is_known_too(tmp_path, capsys):
    (tmp_path / "cifar-10-batches-py").mkdir()
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (tmp_path / "cifar-10-batches-py" / name).write_bytes(b"wrong")
    main(["data", "list", "--root", str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out)["sets"]["cifar10"]["present"]
    assert main(["data", "check", "cifar10", "--root", str(tmp_path)]) == 2
    assert "test_batch: expected md5:40351d587109b95175f43aff81a1287e, found" in capsys.readouterr().out


def test_check_of_a_folder_finds_the_bad_image(class_folder, capsys):
    (class_folder / "dog/0.png").write_bytes(b"broken")
    assert main(["data", "check", str(class_folder), "--json"]) == 2
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert findings["4 images"] == "ok"
    assert [name for name in findings if name.endswith("dog/0.png")]


def test_an_unknown_set_is_one_line(capsys):
    assert main(["data", "get", "cifar11"]) == 2
    assert capsys.readouterr().err.startswith("ncttt: no data set 'cifar11'; did you mean 'cifar10'")


def test_corrupt_then_load_equals_corrupting_on_the_fly(tmp_path, capsys):
    out = tmp_path / "digits-c"
    command = ["data", "corrupt", "digits", "--severity", "2,5", "--corruptions", "fog,gaussian_noise", "--seed", "3"]
    assert main([*command, "--workers", "1", "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert sorted(path.name for path in out.iterdir()) == [
        "corruptions.json",
        "fog.npy",
        "gaussian_noise.npy",
        "labels.npy",
    ]
    made = load(str(out), "test", corruption="gaussian_noise", severity=5)
    flying = load("digits", "test", corruption="gaussian_noise", severity=5, seed=3)
    assert np.array_equal(made.images, flying.images)
    assert np.array_equal(made.labels, flying.labels)
    with pytest.raises(InputError, match=r"severity must be one of \(2, 5\), found 3"):
        load(str(out), "test", corruption="fog", severity=3)
    assert main(["data", "check", str(out)]) == 0


def test_corrupt_a_folder_with_a_bad_image(class_folder, tmp_path, capsys):
    (class_folder / "cat/2.png").write_bytes(b"broken")
    out = str(tmp_path / "pets-c")
    command = ["data", "corrupt", str(class_folder), "--split", "all", "--image-size", "32", "--out", out]
    command += ["--corruptions", "contrast", "--severity", "1", "--workers", "1"]
    assert main(command) == 2
    assert "cat/2.png: cannot be read as an image" in capsys.readouterr().err
    assert main([*command, "--skip-bad"]) == 0
    assert "cat/2.png" in capsys.readouterr().err
    assert load(out, "test", corruption="contrast", severity=1).labels.tolist() == [0, 0, 1, 1]


def test_all_are_the_fifteen_and_the_default_is_all_nineteen(tmp_path, class_folder, capsys):
    command = ["data", "corrupt", str(class_folder), "--split", "all", "--image-size", "32", "--severity", "1"]
    assert main([*command, "--workers", "1", "--out", str(tmp_path / "15"), "--corruptions", "all"]) == 0
    assert {path.stem for path in (tmp_path / "15").glob("*.npy")} == {*CORRUPTIONS, "labels"}
    assert main([*command, "--workers", "1", "--out", str(tmp_path / "19")]) == 0
    assert {path.stem for path in (tmp_path / "19").glob("*.npy")} == {*CORRUPTIONS, *EXTRA, "labels"}


@pytest.fixture
def pets(class_folder, tmp_path):
    """The command that corrupts the folder of cats and dogs, and where to."""
    out = tmp_path / "pets-c"
    command = ["data", "corrupt", str(class_folder), "--split", "all", "--image-size", "32", "--out", str(out)]
    return [*command, "--corruptions", "shot_noise", "--severity", "3", "--workers", "1"], out


def test_images_left_out_do_not_count_on_the_fly_either(class_folder, pets, capsys):
    command, out = pets
    (class_folder / "cat/0.png").write_bytes(b"broken")
    assert main([*command, "--skip-bad"]) == 0
    assert "cat/0.png" in capsys.readouterr().err
    with pytest.warns(UserWarning, match=r"cat/0\.png"):
        flying = load(str(class_folder), "all", None, "shot_noise", 3, image_size=32, skip_bad=True)
    assert np.array_equal(load(str(out), "all", None, "shot_noise", 3).images, np.asarray(flying.images))


def test_the_table_of_constants_can_be_chosen(pets):
    command, out = pets
    assert main([*command, "--constants", "imagenet"]) == 0
    assert json.loads((out / "corruptions.json").read_text())["constants"] == "imagenet"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--image-size", "500"], "500 x 500 pixels"),
        (["--frost", "nowhere"], "no folder of frost photographs"),
        (["--seed", "-1"], "seed -1"),
        (["--workers", "0"], "0 workers"),
        (["--seed", "4"], "made with other settings (seed 0 there, 4 asked)"),
        (["--seed", "4", "--skip-bad"], "made with other settings (seed 0 there, 4 asked)"),
    ],
)
def test_nothing_is_decoded_for_a_run_that_cannot_succeed(pets, wrong, said, capsys, monkeypatch):
    command, _ = pets
    assert main(command) == 0

    def never(*_):
        raise AssertionError("decoded")

    monkeypatch.setattr("ncttt.data.files.image_files.decode", never)
    assert main([*command, *wrong]) == 2
    assert said in capsys.readouterr().err


def test_decoded_images_of_a_killed_run_are_replaced_and_removed(pets):
    command, out = pets
    out.mkdir()
    (out / DECODED).write_bytes(b"left behind")
    assert main(command) == 0
    assert sorted(path.name for path in out.iterdir()) == ["corruptions.json", "labels.npy", "shot_noise.npy"]


def test_an_array_needs_no_decoding(tmp_path, pictures):
    with decoded(pictures(3), tmp_path / "out") as images:
        assert np.array_equal(images, pictures(3))
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_while_decoding_is_an_error(class_folder, tmp_path, monkeypatch):
    # /dev/full answers every write with "no space left on device"; a memory map would end the process.
    images = load(str(class_folder), "all", image_size=224).images
    (tmp_path / DECODED).symlink_to("/dev/full")
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    with pytest.raises(OSError, match="No space left on device"), decoded(images, tmp_path):
        pass


def test_an_unfinished_set_is_not_taken_for_a_whole_one(tmp_path, capsys):
    out = tmp_path / "CIFAR-10-C"
    command = ["data", "corrupt", "digits", "--out", str(out), "--corruptions", "contrast", "--severity", "1"]
    assert main(command) == 0
    (out / "contrast.npy").unlink()  # as after a kill in the middle of it
    (out / ".contrast.npy.abc.new").write_bytes(b"half")
    capsys.readouterr()
    main(["data", "list", "--root", str(tmp_path), "--json"])
    row = json.loads(capsys.readouterr().out)["sets"]["cifar10-c"]
    assert (row["present"], row["unfinished"]) == (False, True)
    main(["data", "list", "--root", str(tmp_path)])
    assert "cifar10-c     unfinished" in capsys.readouterr().out
    assert main(["data", "check", "cifar10-c", "--root", str(tmp_path)]) == 2
    assert "contrast.npy: unfinished" in capsys.readouterr().out
    assert main(["data", "check", str(out)]) == 2
    assert main(command) == 0
    assert main(["data", "check", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["contrast.npy", "corruptions.json", "labels.npy"]


def test_check_finds_a_generated_file_that_has_changed(tmp_path, capsys):
    out = tmp_path / "c"
    assert main(["data", "corrupt", "digits", "--out", str(out), "--corruptions", "contrast", "--severity", "1"]) == 0
    assert main(["data", "check", str(out)]) == 0
    body = bytearray((out / "contrast.npy").read_bytes())
    body[-1] ^= 1
    (out / "contrast.npy").write_bytes(body)
    assert main(["data", "check", str(out)]) == 2
    assert "contrast.npy: expected sha256:" in capsys.readouterr().out


def test_images_of_a_folder_are_corrupted_when_they_are_decoded(class_folder):
    lazy = load(str(class_folder), "all", corruption="shot_noise", severity=3, image_size=32)
    whole = np.asarray(lazy.images)
    assert whole.shape == (5, 32, 32, 3)
    assert np.array_equal(lazy.images[np.array([3, 1])], whole[[3, 1]])
    assert np.array_equal(np.asarray(lazy.subset([4, 2]).images), whole[[4, 2]])
    assert not np.array_equal(whole, load(str(class_folder), "all", image_size=32).images)


@pytest.mark.parametrize("text", ["0", "1-6", "a", "", "3-1", "1,3-1", "1-99999999999", "9" * 5000])
def test_severities_that_make_no_sense(text):
    with pytest.raises(InputError, match="severities"):
        parse_severities(text)


def test_an_unknown_corruption_is_one_line(tmp_path, capsys):
    assert main(["data", "corrupt", "digits", "--out", str(tmp_path), "--corruptions", "fogg"]) == 2
    assert "no corruption 'fogg'; did you mean 'fog'" in capsys.readouterr().err


def test_a_contact_sheet_is_drawn(tmp_path, capsys):
    out = tmp_path / "sheet.png"
    assert main(["data", "sheet", "digits", "--out", str(out), "--corruptions", "fog,contrast"]) == 0
    with Image.open(out) as sheet:
        assert sheet.size == (150 + 6 * 100, 22 + 2 * 100 + 4)
        assert len(set(sheet.crop((150, 22, 246, 118)).tobytes())) > 10  # a digit, not a blank
    assert main(["data", "sheet", "digits", "--out", str(tmp_path / "sheet.xyz")]) == 2
    assert main(["data", "sheet", "digits", "--out", str(out), "--first", "500"]) == 2
    assert "there is no image 500" in capsys.readouterr().err
    assert main(["data", "sheet", "digits", "--out", str(out), "--first", "-1"]) == 2
    assert "there is no image -1" in capsys.readouterr().err
