"""`ncttt adapt` and the stream of folders behind it: clean images are left alone, shifted ones gain, rows are kept."""

import csv
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import ncttt
from ncttt.adapt import PREDICTIONS, TRACE, Tally
from ncttt.adapt.file_batches import file_batches
from ncttt.cli import main
from ncttt.data.corruptions import corrupt

COUNT = 100


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A calibrated model, digits as they are, and the same without contrast; the label is in the name."""
    home = tmp_path_factory.mktemp("adapt")
    model, held_out = ncttt.load("digits-small-ncttt"), ncttt.data.load("digits", "val")
    model.calibrate(ncttt.data.batches(held_out, 65))
    model.classes = held_out.classes
    ncttt.save(model, home / "model")
    test = ncttt.data.load("digits", "test")
    clean = np.asarray(test.images)[:COUNT]
    sets = {"clean": clean, "dull": corrupt(clean, "contrast", 3, constants="imagenet")}
    for name, images in sets.items():
        (home / name / "deep").mkdir(parents=True)
        for number, (pixels, label) in enumerate(zip(images, test.labels, strict=False)):
            Image.fromarray(pixels).save(home / name / "deep" / f"{number:03d}-{label}.png")
    return home


@pytest.fixture
def run(home, tmp_path, capsys):
    """Runs the command with more words; gives its code, summary, rows, trace and what it said beside."""

    def call(*words: str, images=("clean",), model: str | None = None):
        out = tmp_path / "predictions.csv"
        folders = [str(home / name) if (home / name).exists() else name for name in images]
        command = ["adapt", "--model", model or str(home / "model"), "--images", *folders, "--out", str(out)]
        code = main([*command, "--batch-size", "50", "--overwrite", *words])
        said = capsys.readouterr()
        return code, said.out, said.err, rows_of(out), rows_of(tmp_path / "predictions.trace.csv")

    return call


def rows_of(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def accuracy(rows: list[dict[str, str]], column: str) -> float:
    return float(np.mean([row[column] == Path(row["file"]).stem.split("-")[1] for row in rows]))


def test_clean_images_are_left_as_they_are(run, home):
    code, out, _, rows, trace = run("--json", "--batch-size", "100")
    facts = json.loads(out)
    assert code == 0
    assert (facts["images"], facts["batches"], facts["adapted_batches"], facts["changed"]) == (COUNT, 1, 0, 0)
    assert facts["advice"] == "adapting is not needed: the images look like the source's"
    assert list(rows[0]) == list(PREDICTIONS)
    assert [row["file"] for row in rows] == sorted(str(path) for path in (home / "clean/deep").iterdir())
    assert all(row["label"] == row["source_label"] and row["probability"] == row["source_probability"] for row in rows)
    assert accuracy(rows, "label") > 0.95
    assert list(trace[0]) == list(TRACE)
    assert {row["stopped"] for row in trace} == {"left to source"}


@pytest.mark.parametrize("words", [[], ["--method", "ptbn"], ["--method", "tent", "--protocol", "online"]])
def test_shifted_images_gain(run, words):
    code, out, _, rows, trace = run("--json", *words, images=("dull",))
    facts = json.loads(out)
    assert code == 0
    assert facts["adapted_batches"] == facts["batches"] == 2
    assert facts["advice"].startswith("adapting is advised: 2 of 2 batches do not look like the source's")
    assert ("trust those labels less" in facts["advice"]) == (facts["still_unlike_batches"] > 0)
    assert facts["changed"] == sum(row["label"] != row["source_label"] for row in rows) > 0
    assert accuracy(rows, "label") > accuracy(rows, "source_label") + 0.5
    assert facts["changed"] == sum(int(row["changed"]) for row in trace)
    assert all(bool(row["shift"]) == (words == []) for row in rows)
    assert facts["evidence_in_spreads"] < -1


@pytest.mark.parametrize("words", [[], ["--on-collapse", "none"]])
def test_collapse_is_told_and_undone_where_the_protocol_remembers(run, words):
    harm = ("--method", "tent", "--protocol", "online", "--lr", "10", "--stop", "none", *words)
    _, out, _, rows, trace = run("--json", *harm, images=("dull",))
    watched = not words
    assert bool(json.loads(out)["collapses"]) == watched
    assert [row["collapsed"] for row in trace] == (["1", ""] if watched else ["", ""])
    assert [row["stopped"] for row in trace] == (["collapsed", "resting"] if watched else ["steps", "steps"])
    assert (accuracy(rows, "label") > 0.8) == watched


def test_batches_that_adaptation_does_not_mend_are_told():
    tally = Tally(ncttt.load("digits-small-ncttt"))
    mean = float(tally.model.branch.source_score[0])
    assert [tally._below_source(shift, 50) for shift in (mean, mean - 0.3, None)] == [False, True, False]
    tally.batches, tally.unlike, tally.still_unlike = 3, 2, 1
    assert tally.advice().endswith("and 1 still scores below them after it: trust those labels less")


def test_steps_and_settings_are_the_methods(run):
    words = ["--steps", "3", "--lr", "1e-4", "--stop", "none", "--settings", '{"moves": "norm"}']
    _, out, _, _, trace = run(*words, images=("dull",))
    assert {row["steps"] for row in trace} == {"3"}
    assert all(float(row["loss_last"]) < float(row["loss_first"]) for row in trace)
    assert all(not row["confidence"] for row in trace)
    lines = dict(line.split(": ", 1) for line in out.splitlines())
    assert lines["images"] == f"{COUNT} in 2 batches"
    assert lines["adapted"] == "2 of 2 batches, 2 by steps"
    assert lines["advice"].startswith("adapting is advised")
    assert lines["predictions"].endswith("predictions.csv")


def test_online_forgets_at_a_new_folder_and_continual_does_not(home):
    model = ncttt.load(home / "model")
    folders = [home / "dull", home / "clean"]

    def logits(protocol: str, folders: list[Path]) -> list[torch.Tensor]:
        stream = ncttt.FolderStream(model, folders, ncttt.Tent(), protocol=protocol, stop=None, lr=0.01)
        return [batch.logits for batch in stream]

    alone = logits("online", folders[1:])[0]
    assert torch.equal(logits("online", folders)[1], alone)
    assert not torch.equal(logits("continual", folders)[1], alone)


def test_a_stream_begins_anew_each_time(home):
    model = ncttt.load(home / "model")
    stream = ncttt.FolderStream(model, home / "dull", ncttt.Tent(), protocol="continual", batch_size=50, lr=0.01)
    once, again = list(stream), list(stream)
    assert len(stream) == len(once) == 2
    assert stream.images == COUNT
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(once, again, strict=True))


def test_predictions_without_adaptation_are_those_of_the_model(home):
    model = ncttt.load(home / "model")
    for batch in ncttt.FolderStream(model, home / "dull", ncttt.Tent(), protocol="online", batch_size=50):
        pixels = np.stack([np.asarray(Image.open(file)) for file in batch.files])
        with torch.no_grad():
            assert torch.equal(batch.source_logits, model(torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255))


def test_batches_are_even_and_of_one_folder(home):
    plan = file_batches([home / "clean", home / "dull"], 40, "given", seed=0)
    assert [len(batch.files) for batch in plan] == [34, 33, 33] * 2
    assert [batch.domain for batch in plan] == [0, 0, 0, 1, 1, 1]
    shuffled = file_batches([home / "clean"], 40, "random", seed=0)
    assert [file for batch in shuffled for file in batch.files] != [file for batch in plan[:3] for file in batch.files]
    assert sorted(file for batch in shuffled for file in batch.files) == sorted(
        file for batch in plan[:3] for file in batch.files
    )


def test_every_kind_of_image_is_read_and_other_sizes_are_told(run, home, tmp_path):
    folder = tmp_path / "kinds"
    folder.mkdir()
    large = Image.open(first(home)).resize((64, 64), Image.Resampling.NEAREST)
    kinds = {"grey": large.convert("L"), "alpha": large.convert("RGBA"), "palette": large.convert("P"), "rgb": large}
    for name, image in kinds.items():
        image.save(folder / f"{name}.png")
    Image.fromarray(np.asarray(large.convert("L")).astype(np.uint16) * 257).save(folder / "sixteen.png")
    large.save(folder / "tiff.tif")
    code, _, err, rows, _ = run("--batch-size", "6", images=(str(folder),))
    assert code == 0
    assert len(err.splitlines()) == 1
    assert "is 64x64: images are cut to their central square and scaled to 32x32" in err
    assert len(rows) == 6
    assert len({(row["label"], round(float(row["probability"]), 3)) for row in rows}) == 1


def first(home: Path) -> Path:
    return min((home / "clean/deep").iterdir())


@pytest.fixture
def damaged(home, tmp_path) -> Path:
    folder = tmp_path / "damaged"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.png").write_bytes(first(home).read_bytes())
    (folder / "1.png").write_bytes(b"no image")
    return folder


def test_a_bad_image_is_named_or_left_out(run, damaged):
    code, _, err, rows, _ = run(images=("clean", str(damaged)))
    assert code == 2
    assert "1.png: cannot be read as an image" in err.splitlines()[-1]
    assert f"the {COUNT} predictions so far are in" in err
    assert len(rows) == COUNT
    code, out, err, rows, _ = run("--skip-bad", images=(str(damaged),))
    assert code == 0
    assert [Path(row["file"]).name for row in rows] == ["0.png", "2.png"]
    assert "left out" in err
    assert "images: 2 in 1 batch; 1 left out" in out


def test_nothing_readable_is_an_error_and_keeps_the_old_file(run, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/a.png").write_bytes(b"")
    (tmp_path / "predictions.csv").write_text("file\nold\n")
    code, _, err, rows, _ = run("--skip-bad", images=(str(tmp_path / "bad"),))
    assert code == 2
    assert "of 1 image none can be read" in err
    assert rows == [{"file": "old"}]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, None)])
def test_an_interruption_keeps_what_was_computed(home, tmp_path, capsys, monkeypatch, number, code):
    add = Tally.add

    def interrupted(self: Tally, batch: ncttt.adapt.Adapted) -> None:
        add(self, batch)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(Tally, "add", interrupted)
    out = tmp_path / "out.csv"
    words = ["--model", str(home / "model"), "--images", str(home / "clean"), "--out", str(out), "--batch-size", "25"]
    if code is None:
        with pytest.raises(SystemExit, match=str(128 + number)):
            main(["adapt", *words])
    else:
        assert main(["adapt", *words]) == code
    assert "the 25 predictions so far are in" in capsys.readouterr().err
    assert len(rows_of(out)) == 25
    assert len(rows_of(tmp_path / "out.trace.csv")) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--images", "nowhere"], "there is no folder and no file nowhere"),
        (["--model", "digits-smal-ncttt"], "did you mean 'digits-small-ncttt'"),
        (["--model", "no/where"], "no checkpoint in no/where"),
        (["--out", "nowhere/out.csv"], "cannot write nowhere/out.csv: nowhere is no folder"),
        (["--out", "/proc/out.csv"], "cannot write /proc/out.csv"),
        (["--out", "/tmp"], "cannot write /tmp: it is a folder"),
        (["--trace", "nowhere/trace.csv"], "nowhere is no folder"),
        (["--method", "nc_tt"], "did you mean 'nc_ttt'"),
        (["--method", "clust3"], "ClusT3 needs a model trained for it"),
        (["--protocol", "onlin"], "did you mean 'online'"),
        (["--settings", '{"sigma": 1}'], "no setting 'sigma'"),
        (["--batch-size", "0"], "batch_size must be a whole number of at least 1"),
        (["--device", "gpu"], "device 'gpu' cannot be used here"),
    ],
)
def test_what_the_user_did_wrong_is_one_clear_line(run, words, message):
    code, out, err, rows, _ = run(*words)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
    assert not out
    assert not rows


def test_a_folder_without_images_and_an_unknown_stop_are_told(run, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/notes.txt").write_text("no image")
    code, _, err, _, _ = run(images=(str(tmp_path / "empty"),))
    assert code == 2
    assert err.splitlines() == [f"ncttt: {tmp_path / 'empty'} holds no images"]
    with pytest.raises(SystemExit, match="2"):
        run("--stop", "sorce")


def test_a_model_that_was_not_calibrated_says_what_to_do(run, home, tmp_path):
    model = ncttt.load(home / "model")
    model.source_certainty.fill_(-1.0)
    model.classes = None
    ncttt.save(model, tmp_path / "old")
    code, _, err, _, _ = run(model=str(tmp_path / "old"))
    assert code == 2
    assert "use --stop none" in err
    code, out, _, rows, _ = run("--stop", "none", "--method", "ptbn", model=str(tmp_path / "old"))
    assert code == 0
    assert "whether adapting is needed is not known" in out
    assert rows[0]["label"] in "0123456789"


def test_a_plain_module_needs_an_image_size(home):
    net = ncttt.load(home / "model").classifier
    with pytest.raises(ncttt.InputError, match="give image_size"):
        ncttt.FolderStream(net, home / "clean", ncttt.PTBN(), stop=None)
    stream = ncttt.FolderStream(net, home / "clean", ncttt.PTBN(), stop=None, image_size=32)
    assert sum(len(batch.files) for batch in stream) == COUNT


def test_one_call_does_what_the_command_does(run, home, tmp_path):
    _, out, _, rows, trace = run("--json", "--method", "tent", "--protocol", "online", images=("dull",))
    model = ncttt.load(home / "model")
    settings = {"method": "tent", "protocol": "online", "batch_size": 50}
    facts = ncttt.adapt.adapt_folders(model, home / "dull", tmp_path / "own.csv", **settings)
    files = {"predictions": str(tmp_path / "own.csv"), "trace": str(tmp_path / "own.trace.csv")}
    assert facts == json.loads(out) | files
    assert rows_of(tmp_path / "own.csv") == rows
    assert rows_of(tmp_path / "own.trace.csv") == trace


def test_predictions_and_trace_need_a_file_each(home, tmp_path):
    out = str(tmp_path / "out.csv")
    with pytest.raises(ncttt.InputError, match=r"need a file each; found .*out\.csv for both"):
        ncttt.adapt.adapt_folders(home / "model", home / "clean", out, trace=out)


def test_a_model_that_is_given_is_named_so_in_the_error(home, tmp_path):
    model = ncttt.load(home / "model")
    model.source_certainty.fill_(-1.0)
    with pytest.raises(ncttt.InputError, match=r"^the model does not know how certain it is"):
        ncttt.adapt.adapt_folders(model, home / "clean", tmp_path / "out.csv")


def test_files_of_an_earlier_run_are_not_overwritten_silently(home, tmp_path, capsys):
    out = tmp_path / "predictions.csv"
    command = ["adapt", "--model", str(home / "model"), "--images", str(home / "clean"), "--out", str(out)]
    for name in ("predictions.csv", "predictions.trace.csv"):
        (tmp_path / name).write_text("mine\n")
        assert main(command) == 2
        told = f"ncttt: {tmp_path / name} is there already; choose another --out, or replace it with --overwrite\n"
        assert capsys.readouterr().err == told
        assert (tmp_path / name).read_text() == "mine\n"
        (tmp_path / name).unlink()
    assert main(command) == 0
    assert main([*command, "--overwrite"]) == 0
    assert len(rows_of(out)) == COUNT


def test_single_files_are_images_as_well(run, home):
    files = sorted(map(str, (home / "dull").rglob("*.png")))
    code, out, _, rows, (trace,) = run(images=(files[3],))
    assert code == 0
    assert [row["file"] for row in rows] == [files[3]]
    assert "images: 1 in 1 batch\n" in out
    assert "of 1 batches" not in out
    assert (trace["folder"], trace["images"]) == (str(home / "dull" / "deep"), "1")
    code, _, _, rows, trace = run(images=(files[5], files[2], "clean"))
    assert [row["file"] for row in rows[:2]] == [files[5], files[2]]  # as they were given, in one batch
    assert [line["images"] for line in trace] == ["2", "50", "50"]
    assert len(rows) == 2 + COUNT


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--order", "by_class"], "the order 'by_class' follows the classes of images, and image files have no labels"),
        (["--order", "dirichlet(0.1)"], "follows the classes of images, and image files have no labels"),
        (["--order", "mixed"], "mixes corruptions of the same images, and folders hold others"),
        (["--order", "sorted"], "no order 'sorted'"),
        (["--order", "random", "--shuffle"], "both say how files come; leave one out"),
    ],
)
def test_orders_that_folders_cannot_have_are_one_clear_line(home, tmp_path, capsys, options, why):
    asked = [
        "adapt",
        "--model",
        str(home / "model"),
        "--images",
        str(home / "dull"),
        "--out",
        str(tmp_path / "out.csv"),
    ]
    assert main([*asked, *options]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if why in line]
    assert line.startswith("ncttt: ")


def test_an_order_is_what_shuffle_says(home):
    model = ncttt.load(home / "model")
    for order, shuffle in (("random", True), ("given", False)):
        first, second = (
            ncttt.FolderStream(model, home / "dull", **how) for how in ({"order": order}, {"shuffle": shuffle})
        )
        assert first.batches == second.batches


def warned_lines(said: str, about: str) -> list[str]:
    return [line for line in said.splitlines() if about in line]


def test_a_folder_with_fewer_images_than_the_batch_that_was_asked_for_is_told(run, home, tmp_path):
    for number, file in enumerate(sorted((home / "dull").rglob("*.png"))[:5]):
        (tmp_path / "few").mkdir(exist_ok=True)
        (tmp_path / "few" / f"{number}.png").write_bytes(file.read_bytes())
    code, _, said, rows, (trace,) = run("--batch-size", "64", images=(str(tmp_path / "few"),))
    assert (code, len(rows), trace["images"]) == (0, 5, "5")
    (line,) = warned_lines(said, "a small batch")
    assert line == f"ncttt: {tmp_path / 'few'} has 5 images: fewer than the 64 of a batch, so they are a small batch"
    stream = ncttt.FolderStream(ncttt.load(home / "model"), tmp_path / "few")  # a size that nobody asked for
    assert [len(batch.files) for batch in stream.batches] == [5]
    code, _, said, _, _ = run("--batch-size", "100")
    assert not warned_lines(said, "a small batch")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "RoTTA learns from images that it remembers, and the protocol 'episodic' forgets after each batch"),
        (["--settings", '{"every": 64}'], "takes a step after each 64 images (every), and of the 100 images"),
        (
            ["--settings", '{"every": 50, "capacity": 101}'],
            "has a memory of 101 images (capacity), which the 100 images",
        ),
        (
            ["--settings", '{"every": 50}', "--norm", "window(200)"],
            "'window(200)' takes the statistics of the last 200",
        ),
    ],
)
def test_a_method_that_a_folder_is_too_short_for_says_so_in_one_line(run, words, why):
    online = ["--protocol", "online"] if words else []
    code, _, said, rows, _ = run("--method", "rotta", *online, *words)
    assert (code, len(rows)) == (0, COUNT)
    (line,) = warned_lines(said, why)
    assert line.startswith("ncttt: ")


def test_a_method_that_learns_from_a_folder_says_nothing(run):
    _, _, said, _, _ = run("--method", "rotta", "--protocol", "online", "--settings", '{"every": 50}')
    assert "never" not in said
