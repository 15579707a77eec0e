"""`ncttt adapt` on folders of real photographs, clean and shifted, with the shipped model."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ncttt.cli import main
from ncttt.data import load

pytestmark = pytest.mark.network

IMAGES = 1000


def write(folder: Path, root: Path, **corruption: object) -> np.ndarray:
    """The first test images as PNG files, in their order; returns the names of their classes."""
    data = load("cifar10", "test", root, **corruption).subset(range(IMAGES))
    folder.mkdir()
    for number in range(IMAGES):
        Image.fromarray(np.asarray(data.images[number])).save(folder / f"{number:05}.png")
    return np.asarray([data.classes[label] for label in data.labels])


def adapted(folder: Path, truth: np.ndarray, capsys, *words: str) -> tuple[dict, float, float]:
    """The summary, and the accuracies with and without adaptation."""
    out = folder.with_suffix(".csv")
    asked = ["adapt", "--model", "cifar10-small-ncttt", "--images", str(folder), "--out", str(out), "--json"]
    assert main([*asked, "--overwrite", *words]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    truth = truth[[int(Path(row["file"]).stem) for row in rows]]
    after, before = (np.mean([row[name] for row in rows] == truth) for name in ("label", "source_label"))
    return json.loads(capsys.readouterr().out), float(after), float(before)


@pytest.mark.parametrize("corruption", ["gaussian_noise", "contrast", "frost"])
def test_shifted_photographs_are_recognised_better(cifar10_root, corruption, tmp_path, capsys):
    truth = write(tmp_path / "shifted", cifar10_root, corruption=corruption, severity=5)
    summary, after, before = adapted(tmp_path / "shifted", truth, capsys)
    print(summary, before, after)
    assert after > before + 0.03


def test_clean_photographs_are_left_alone(cifar10_root, tmp_path, capsys):
    truth = write(tmp_path / "clean", cifar10_root)
    summary, after, before = adapted(tmp_path / "clean", truth, capsys)
    print(summary, before, after)
    assert after >= before - 0.005
    assert "not needed" in summary["advice"]


def test_photographs_sorted_by_class_are_mixed(cifar10_root, tmp_path, capsys):
    truth = write(tmp_path / "shifted", cifar10_root, corruption="gaussian_noise", severity=5)
    cheap = ("--method", "ptbn")
    _, mixed, _ = adapted(tmp_path / "shifted", truth, capsys, *cheap)
    for number, name in enumerate(truth):
        (tmp_path / "shifted" / name).mkdir(exist_ok=True)
        (tmp_path / "shifted" / f"{number:05}.png").rename(tmp_path / "shifted" / name / f"{number:05}.png")
    summary, after, before = adapted(tmp_path / "shifted", truth, capsys, *cheap)
    _, kept, _ = adapted(tmp_path / "shifted", truth, capsys, *cheap, "--shuffle", "false")
    print(f"source {before}, sorted {kept}, mixed by us {after}, mixed {mixed}")
    assert summary["sorted_folders"] == [str(tmp_path / "shifted")]
    assert after > mixed - 0.03
    assert after > max(kept, before) + 0.1
