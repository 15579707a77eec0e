"""Grids on corrupted images that lie ready: CIFAR-10-C below a root, and folders of arrays in its layout."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import small_grid
from ncttt import InputError
from ncttt.benchmark import Entry, ImageDraw, Scenario, cells_of, draws, run_grid
from ncttt.benchmark.rows import was_read
from ncttt.cli import main
from ncttt.data import load
from ncttt.data.batching import shuffled
from ncttt.data.corruptions import corrupt, generate
from ncttt.report import tables
from ncttt.report.benchmark_tables import summary_table
from ncttt.report.page.origin import grids_of
from ncttt.report.shares import shares_of_rows

EACH = 20  # images of a severity
NAMES = ["gaussian_noise", "contrast"]


def write_arrays(folder: Path, classes: int = 10) -> Path:
    """Digits in the published layout: all severities of a corruption in one file, the labels five times over."""
    digits = load("digits", "test").subset(range(EACH))
    folder.mkdir(parents=True)
    for name in NAMES:
        blocks = [corrupt(np.asarray(digits.images), name, severity) for severity in range(1, 6)]
        np.save(folder / f"{name}.npy", np.concatenate(blocks))
    labels = np.arange(EACH) * 7 % classes
    labels[-1] = classes - 1
    np.save(folder / "labels.npy", np.tile(labels, 5).astype(np.uint8))
    return folder


@pytest.fixture
def arrays(tmp_path) -> Path:
    return write_arrays(tmp_path / "root/CIFAR-10-C")


def grid(checkpoint, data, **changes):
    return small_grid.grid(
        checkpoint, **{"data": str(data), "images": 15, "constants": None, "batch_sizes": None} | changes
    )


def test_a_root_with_cifar10_c_gives_rows(checkpoint, arrays, store):
    planned = grid(checkpoint, "cifar10-c", root=str(arrays.parent), severities=[1, 5])
    outcome = run_grid(planned, store, executor="here")
    assert outcome.failures == []
    assert len(outcome.rows) == 2 * 2 * 3
    assert {(row["data"], row["split"], row["constants"], row["images"]) for row in outcome.rows} == {
        ("cifar10-c", "test", "published", 15)
    }
    assert len({row["images_digest"] for row in outcome.rows}) == 4  # a block each
    assert len(summary_table(outcome.rows).lines) == 2 * 3  # corruptions are put together


def test_a_folder_of_arrays_gives_the_same_cells(checkpoint, arrays, store):
    by_name = cells_of(grid(checkpoint, "cifar10-c", root=str(arrays.parent)))
    by_path = cells_of(grid(checkpoint, arrays))
    assert [cell.key for cell in by_path] == [cell.key for cell in by_name]
    assert {cell.columns()["data"] for cell in by_path} == {str(arrays)}
    outcome = run_grid(grid(checkpoint, arrays), store, executor="here")
    assert outcome.failures == []
    assert len(outcome.rows) == 6


def test_the_images_and_labels_are_those_of_the_block(checkpoint, arrays, tmp_path):
    cells = cells_of(grid(checkpoint, arrays, severities=[2], skip=4))
    places = np.sort(shuffled(EACH, 0, 0)[4:19])
    for name in NAMES:
        (scenario,) = {cell.scenarios[0] for cell in cells if cell.scenarios[0].corruption == name}
        block = np.load(arrays / f"{name}.npy")[EACH : 2 * EACH]
        assert np.array_equal(scenario.images(tmp_path / "cache"), block[places])
        assert np.array_equal(scenario.labels(tmp_path / "cache"), np.load(arrays / "labels.npy")[places])


def test_the_key_is_that_of_the_images_themselves(checkpoint, arrays):
    before = {cell.scenarios[0].corruption: cell.key for cell in cells_of(grid(checkpoint, arrays))}
    changed = np.load(arrays / "contrast.npy")
    changed[4 * EACH :] ^= 1
    np.save(arrays / "contrast.npy", changed)
    draws._read.cache_clear()
    after = {cell.scenarios[0].corruption: cell.key for cell in cells_of(grid(checkpoint, arrays))}
    assert after["gaussian_noise"] == before["gaussian_noise"]
    assert after["contrast"] != before["contrast"]


def test_the_images_of_a_row_are_found_by_its_columns(checkpoint, arrays):
    for cell in cells_of(grid(checkpoint, arrays)):
        row = cell.columns()
        named = [row[name] for name in ("images_digest", "corruption", "severity", "constants")]
        assert Scenario(ImageDraw(row["data"], row["split"]), *named).name == cell.scenarios[0].name


def test_a_sequence_of_corruptions(checkpoint, arrays, store):
    planned = grid(checkpoint, arrays, protocols=["continual"], orders=["random", "mixed"])
    outcome = run_grid(planned, store, executor="here")
    assert outcome.failures == []
    assert {row["corruption"] for row in outcome.rows} == {"gaussian_noise+contrast"}


def test_cifar100_c(tmp_path):
    import torch

    import ncttt

    write_arrays(tmp_path / "root/CIFAR-100-C", classes=100)
    network = ncttt.models.small(num_classes=100, width=4)
    ncttt.save(ncttt.attach(network, "layer3", ncttt.Source(), torch.rand(2, 3, 32, 32)), tmp_path / "model")
    entry = Entry(method="ptbn", checkpoint=str(tmp_path / "model"))
    cells = cells_of(grid("", "cifar100-c", root=str(tmp_path / "root"), methods=[entry]))
    assert [cell.columns()["data"] for cell in cells] == ["cifar100-c"] * 2


def test_a_set_that_was_made_here_does_not_pass_for_a_published_one(checkpoint, tmp_path):
    digits = load("digits", "test").subset(range(EACH))
    generate(np.asarray(digits.images), digits.labels, tmp_path / "made", corruptions=NAMES, severities=[5])
    cells = cells_of(grid(checkpoint, tmp_path / "made"))
    assert {cell.columns()["constants"] for cell in cells} == {"made(cifar)"}
    assert was_read("made(cifar)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corruptions": ["clean", "contrast"]}, "holds corrupted images alone; leave out 'clean'"),
        ({"split": "val"}, "which have the split 'test' alone; found 'val'"),
        ({"constants": "cifar"}, r"is read as it is \(published\); leave out constants, found 'cifar'"),
        ({"constants": "imagenet"}, r"is read as it is \(published\); leave out constants, found 'imagenet'"),
        ({"images": 21}, "asked for 21 images of CIFAR-10-C gaussian_noise 5, which has 20"),
        ({"corruptions": ["contrast", "fog"]}, r"fog\.npy is missing: no corruption 'fog'"),
    ],
)
def test_what_such_a_set_cannot_give_is_told(checkpoint, arrays, change, message):
    with pytest.raises(InputError, match=message):
        cells_of(grid(checkpoint, arrays, **change))


def replaced(name, change):
    def damage(folder: Path) -> None:
        np.save(folder / name, change(np.load(folder / name)))

    return damage


def truncate(folder: Path) -> None:
    path = folder / "contrast.npy"
    path.write_bytes(path.read_bytes()[:-100])


class Trap:
    """An object whose unpickling would be seen."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def pickled(name):
    def damage(folder: Path) -> None:
        np.save(folder / name, np.array([Trap()] * 5 * EACH, dtype=object), allow_pickle=True)

    return damage


DAMAGED = [
    (
        replaced("contrast.npy", lambda a: a[:, :30]),
        "contrast.npy: expected uint8 (N, 32, 32, 3), found uint8 (100, 30",
    ),
    (replaced("contrast.npy", lambda a: a.astype(np.float32)), "expected uint8 (N, 32, 32, 3), found float32"),
    (replaced("contrast.npy", lambda a: a[:-1]), "contrast.npy: 99 images and 100 labels; expected 5 equal blocks"),
    (replaced("labels.npy", lambda a: a[:EACH]), ".npy: 100 images and 20 labels"),
    (replaced("labels.npy", lambda a: a + 1), "label 10 of image"),
    (replaced("labels.npy", lambda a: a / 2), "labels.npy: labels must be integers (N,), found float"),
    (replaced("contrast.npy", lambda a: a[..., :1]), "found uint8 (100, 32, 32, 1)"),
    (replaced("labels.npy", lambda a: a[:, None]), "labels.npy: labels must be integers (N,), found uint8 (100, 1)"),
    (replaced("labels.npy", lambda a: a.astype(int) - 1), "label -1 of image"),
    (truncate, "contrast.npy: truncated, or not a plain .npy file"),
    (lambda folder: (folder / "contrast.npy").write_bytes(b""), "contrast.npy: truncated, or not a plain .npy file"),
    (pickled("contrast.npy"), "contrast.npy: truncated, or not a plain .npy file"),
    (pickled("labels.npy"), "labels.npy: truncated, or not a plain .npy file"),
    (lambda folder: (folder / "contrast.npy").unlink(), "contrast.npy is missing"),
    (lambda folder: (folder / "labels.npy").unlink(), "labels.npy is missing"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGED)
def test_damaged_arrays_are_one_clear_line_before_anything_is_measured(
    checkpoint, arrays, tmp_path, capsys, monkeypatch, damage, message
):
    damage(arrays)
    monkeypatch.chdir(tmp_path)
    entries = json.dumps([{"method": "ptbn", "checkpoint": checkpoint}])
    command = [
        "bench", "--data", "cifar10-c", "--root", str(arrays.parent), "--corruptions", json.dumps(NAMES),
        "--executor", "here", "--store", str(tmp_path / "rows.sqlite"), "--methods", entries,
    ]  # fmt: skip
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not Path("unpickled").exists()


# A folder may hold images of any size and any number of classes, so that two messages differ.
IN_A_FOLDER = {"(N, 32, 32, 3)": "(N, H, W, 3)", "label 10 of image": "tells 10 classes apart"}


@pytest.mark.parametrize(("damage", "message"), DAMAGED[1:])
def test_damaged_arrays_in_a_folder_are_one_clear_line(checkpoint, arrays, tmp_path, capsys, damage, message):
    damage(arrays)
    for other, said in IN_A_FOLDER.items():
        message = message.replace(other, said)
    entries = json.dumps([{"method": "ptbn", "checkpoint": checkpoint}])
    command = ["bench", "--data", str(arrays), "--corruptions", json.dumps(NAMES), "--executor", "here"]
    assert main([*command, "--store", str(tmp_path / "rows.sqlite"), "--methods", entries]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_rows_of_published_and_of_generated_images_are_kept_apart(checkpoint, arrays, store, tmp_path, capsys):
    """Of one name, in one store: no number of a table, of a share of gains or of a summary has both in it."""
    digits = load("digits", "test").subset(range(EACH))
    made = tmp_path / "other/CIFAR-10-C"
    generate(np.asarray(digits.images), digits.labels, made, corruptions=NAMES)
    planned = {"root": str(arrays.parent), "split": "test", "images": EACH}
    assert run_grid(grid(checkpoint, "cifar10-c", **planned), store, executor="here").failures == []
    both = run_grid(grid(checkpoint, "cifar10-c", **planned | {"root": str(made.parent)}), store, executor="here")
    assert {row["constants"] for row in both.rows} == {"made(cifar)"}
    rows = store.rows()
    shown = tables(rows)
    assert [re.findall(r"constants (\S+),", table.title) for table in shown] == [["made(cifar)"], ["published"]]
    assert [share.setup["constants"] for share in shares_of_rows(rows)] == ["made(cifar)", "published"]
    assert main(["rows", "show", str(store.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len({line.split("\t")[0] for line in lines[1:]}) == 2
    assert [yaml.safe_load(text)["constants"] for text in grids_of(rows)] in (
        ["published", "made(cifar)"],
        ["made(cifar)", "published"],
    )


@pytest.mark.parametrize("file", ["contrast.npy", "labels.npy"])
def test_a_folder_without_one_of_its_files_names_it(checkpoint, arrays, file):
    (arrays / file).unlink()
    with pytest.raises(InputError, match=f"{file} is missing"):
        cells_of(grid(checkpoint, arrays))


def test_images_of_several_sizes_make_no_grid(checkpoint, arrays):
    np.save(arrays / "contrast.npy", np.zeros((100, 16, 16, 3), np.uint8))
    with pytest.raises(InputError, match=r"contrast has images \(15, 16, 16, 3\), the first corruption \(15, 32"):
        cells_of(grid(checkpoint, arrays))
