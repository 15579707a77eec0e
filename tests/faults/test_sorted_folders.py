"""Folders sorted by class, the commonest layout, do not ruin the predictions."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ncttt
from ncttt.adapt import class_order
from ncttt.cli import main
from ncttt.data.corruptions import corrupt

MODEL = "digits-small-ncttt"


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """Faded digits: `sorted/<class>/<image>`, and `mixed/<image>` in the order of the data set."""
    home = tmp_path_factory.mktemp("folders")
    test = ncttt.data.load("digits", "test")
    images = corrupt(np.asarray(test.images), "contrast", 3, constants="imagenet")
    for number, (pixels, label) in enumerate(zip(images, test.labels, strict=True)):
        for path in (home / f"sorted/{label}/{number:03d}-{label}.png", home / f"mixed/{number:03d}-{label}.png"):
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path)
    return home


@pytest.fixture
def adapt(tmp_path, capsys):
    """Accuracy with and without adaptation, the facts and the warnings of a run."""

    def run(*words: str) -> tuple[float, float, dict, str]:
        out = tmp_path / "predictions.csv"
        assert main(["adapt", "--model", MODEL, "--out", str(out), "--overwrite", "--json", "--images", *words]) == 0
        said = capsys.readouterr()
        with out.open() as file:
            rows = list(csv.DictReader(file))
        right = [
            np.mean([Path(row["file"]).stem.endswith(f"-{row[name]}") for row in rows])
            for name in ("label", "source_label")
        ]
        return *right, json.loads(said.out), said.err

    return run


# In a stream, batches below 64 images get the statistics of the stream, which a sorted folder harms less.
@pytest.mark.parametrize(
    ("protocol", "size", "harm"), [("episodic", "64", 0.2), ("online", "72", 0.2), ("online", "64", 0.1)]
)
def test_a_folder_sorted_by_class_is_shuffled_and_said(folders, adapt, protocol, size, harm):
    options = ("--protocol", protocol, "--batch-size", size)
    after, before, facts, said = adapt(str(folders / "sorted"), *options)
    mixed = adapt(str(folders / "mixed"), *options)
    kept = adapt(str(folders / "sorted"), *options, "--shuffle", "false")
    assert facts["sorted_folders"] == [str(folders / "sorted")]
    assert "seem to be sorted by class" in said
    assert "they are shuffled" in said
    assert after > before + 0.3
    assert after > mixed[0] - 0.03
    assert kept[0] < after - harm  # what would happen without
    assert "sorted" not in kept[3]


@pytest.mark.sound
def test_a_mixed_folder_stays_in_its_order(folders, adapt):
    *_, facts, said = adapt(str(folders / "mixed"), "--batch-size", "64")
    assert facts["sorted_folders"] == []
    assert "sorted" not in said


def test_a_stream_over_folders_keeps_its_order_and_says_what_to_do(folders, adapt):
    *_, said = adapt(str(folders / "sorted"), "--protocol", "continual", "--batch-size", "64")
    assert "seem to be sorted by class" in said
    assert "--shuffle" in said
    assert "they are shuffled" not in said


def test_a_folder_for_each_class_is_told(folders, adapt):
    *_, said = adapt(*(str(folders / "sorted" / str(label)) for label in range(10)))
    assert "each folder seems to hold images of one class" in said


@pytest.mark.parametrize("classes", [2, 10, 100, 1000])
@pytest.mark.parametrize("batch", [8, 32, 128])
def test_order_is_told_for_any_number_of_classes(classes, batch):
    """Predictions that are right three times of five: a sorted order is found, a random one is not."""
    random = np.random.default_rng(classes + batch)
    labels = np.repeat(np.arange(classes), batch * max(1, 20 // classes))
    found = []
    for truth in (labels, random.permutation(labels)):
        guesses = np.where(random.random(len(truth)) < 0.6, truth, random.integers(classes, size=len(truth)))
        groups = [[str(number) for number in part] for part in np.split(np.arange(len(truth)), len(truth) // batch)]
        drawn = class_order.drawn(groups, seed=0)
        found.append(class_order.follows(guesses[[int(file) for file in drawn]], np.array([*drawn.values()])))
    assert found == [True, False]


@pytest.mark.sound
def test_chance_is_not_taken_for_order():
    """Random classes in random groups, skewed ones too: a thousand streams, at most a few alarms."""
    random = np.random.default_rng(0)
    alarms = 0
    for _ in range(1000):
        share = random.dirichlet(np.full(10, 0.5))
        classes = random.choice(10, size=64, p=share)
        alarms += class_order.follows(classes, np.repeat(np.arange(4), 16))
    assert alarms <= 5
