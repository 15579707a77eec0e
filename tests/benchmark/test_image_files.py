"""Image folders from training to bench and adapt: one size, one way to get it, decoded once, in little memory."""

import shutil
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import ncttt
from ncttt.adapt import adapt_folders
from ncttt.benchmark import Entry, Grid, cells_of, draws, run_cells, run_grid
from ncttt.benchmark.scenarios import decode_files
from ncttt.benchmark.tuning.checks import check_tuning
from ncttt.benchmark.tuning.config import Tuning
from ncttt.cli import main
from ncttt.data import LazyImages, folder
from ncttt.data.files.image_files import decode
from ncttt.training import Job, run_job
from ncttt.training.launch import load_split

SPLITS = {"fit": 64, "val": 32, "test": 30}


def write_photographs(root: Path) -> Path:
    """Oblong PNG and JPEG files: bright or dark in the middle, the other way round at the ends."""
    random = np.random.default_rng(0)
    for split, count in SPLITS.items():
        for number in range(count):
            place = root / split / ("dark" if number % 2 else "bright")
            place.mkdir(parents=True, exist_ok=True)
            width, height = (int(side) for side in random.integers(36, 60, 2))
            pixels = random.integers(0, 80, (height, width, 3)) + (0 if number % 2 else 150)
            Image.fromarray(pixels.astype(np.uint8)).save(place / f"{number}.{'jpg' if number % 3 else 'png'}")
    return root


@pytest.fixture(scope="module")
def photographs(tmp_path_factory) -> Path:
    return write_photographs(tmp_path_factory.mktemp("data") / "photographs")


@pytest.fixture(scope="module")
def trained(photographs, tmp_path_factory) -> str:
    """A small network that has learned from the photographs at 32 pixels, the crop way."""
    recipe = ncttt.Recipe(epochs=2, batch_size=16, workers=2)
    job = Job(data=str(photographs), image_size=32, resize="crop", network_settings={"width": 4}, layer="layer3",
              method="source", recipe=recipe)  # fmt: skip
    run_job(job, tmp_path_factory.mktemp("runs") / "run", observers=[])
    return str(tmp_path_factory.getbasetemp() / "runs0/run/last")


def grid_on(data: Path, checkpoint: str | list[str], **changes) -> Grid:
    entries = [Entry(method=name, checkpoint=checkpoint) for name in ("source", "ptbn")]
    grid = Grid(data=str(data), methods=entries, corruptions=["clean", "contrast"], severities=[3], batch_sizes=[10])
    return replace(grid, **changes)


def untrained(place: Path, size: int, resize: str = "square") -> str:
    torch.manual_seed(len(resize))
    model = ncttt.attach(
        ncttt.models.small(num_classes=2, width=4), "layer3", ncttt.Source(), torch.rand(2, 3, size, size)
    )
    model.resize = resize
    ncttt.save(model, place)
    return str(place)


def test_a_training_is_remembered_by_its_checkpoint(trained):
    model = ncttt.load(trained)
    assert (model.input_shape, model.resize, model.classes) == ((3, 32, 32), "crop", ("bright", "dark"))


def test_a_bench_of_a_model_trained_on_folders(trained, photographs, store):
    outcome = run_grid(grid_on(photographs, trained), store, executor="here", progress=False)
    assert outcome.failures == []
    assert [(row["corruption"], row["method"], row["images"]) for row in outcome.rows] == [
        ("clean", "source", 30), ("clean", "ptbn", 30), ("contrast", "source", 30), ("contrast", "ptbn", 30),
    ]  # fmt: skip
    scenario = cells_of(grid_on(photographs, trained))[0].scenarios[0]
    files = folder(photographs / "test", image_size=32, resize="crop").images
    assert np.array_equal(scenario.images(store.path.parent / "images"), np.asarray(files))


def test_adapting_to_a_folder_uses_the_way_of_the_training(trained, photographs, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "ncttt.adapt.file_batches.decode",
        lambda path, size, resize: asked.append((size, resize)) or decode(path, size, resize),
    )
    with pytest.warns(UserWarning, match="images are scaled to a shorter side of 37 and cut to 32x32"):
        facts = adapt_folders(trained, photographs / "test", tmp_path / "out.csv", batch_size=10, method="ptbn")
    assert facts["images"] == 30
    assert set(asked) == {(32, "crop")}
    asked.clear()
    with pytest.warns(UserWarning, match="cut to their central square and scaled to 32x32"):
        adapt_folders(trained, photographs / "test", tmp_path / "other.csv", method="ptbn", resize="square")
    assert set(asked) == {(32, "square")}


def test_keys_depend_on_the_way_and_the_size(trained, photographs):
    ways = [cells_of(grid_on(photographs, trained, resize=way)) for way in (None, "square", "crop(37)", "crop(40)")]
    keys = [{cell.key for cell in cells} for cells in ways]
    assert keys[0] == keys[2]  # crop is crop(37) at 32 pixels
    assert len(keys[0] | keys[1] | keys[3]) == 3 * len(keys[0])


def test_images_of_the_size_to_learn_from_have_the_scale_of_the_others(photographs):
    job = Job(data=str(photographs), image_size=32, resize="crop", train_size=36)
    sets = [load_split(job, split).images for split in ("fit", "val")]
    assert [(images.size, images.resize) for images in sets if isinstance(images, LazyImages)] == [
        (36, "crop(37)"), (32, "crop"),
    ]  # fmt: skip
    with pytest.raises(ncttt.InputError, match=r"a shorter side of 37 pixels, too few to cut 48 out of it"):
        load_split(replace(job, train_size=48), "fit")


def test_held_out_images_are_read_by_the_workers(photographs, monkeypatch, tmp_path):
    from threading import current_thread, main_thread

    readers = []
    monkeypatch.setattr(
        "ncttt.data.files.image_files.decode",
        lambda *a: readers.append((a[0].parts[-3], current_thread())) or decode(*a),
    )
    job = Job(data=str(photographs), image_size=32, network_settings={"width": 4}, layer="layer3", method="source",
              recipe=ncttt.Recipe(epochs=1, batch_size=16, workers=2))  # fmt: skip
    run_job(job, tmp_path / "run", observers=[])
    held_out = [thread for split, thread in readers if split in ("val", "test")]
    assert len(held_out) == 3 * SPLITS["val"] + SPLITS["test"]  # metrics, and calibration of the last and the best
    assert main_thread() not in held_out


def test_the_key_follows_from_the_contents_of_files_not_from_their_names(trained, tmp_path):
    root = write_photographs(tmp_path / "a")
    keys = [cell.key for cell in cells_of(grid_on(root, trained))]
    root.rename(tmp_path / "b")
    assert [cell.key for cell in cells_of(grid_on(tmp_path / "b", trained))] == keys
    changed = tmp_path / "b/test/dark/29.jpg"
    Image.new("RGB", (40, 50)).save(changed)
    draws._read.cache_clear()
    assert set(keys).isdisjoint(cell.key for cell in cells_of(grid_on(tmp_path / "b", trained)))


def test_planning_decodes_nothing_and_measuring_decodes_once(trained, photographs, store, monkeypatch):
    decoded, decode_hashed = [], draws.decode_hashed
    monkeypatch.setattr(draws, "decode_hashed", lambda *a: decoded.append(a[0]) or decode_hashed(*a))
    monkeypatch.setattr("ncttt.data.files.image_files.decode", None)
    cells = cells_of(grid_on(photographs, trained, severities=[1, 3]))
    assert decoded == []
    assert run_cells(cells, store).failures == []
    assert len(decoded) == len(set(decoded)) == SPLITS["test"]


def test_measuring_needs_the_files_no_more_once_they_are_decoded(trained, tmp_path, store):
    root = write_photographs(tmp_path / "photographs")
    cells = cells_of(grid_on(root, trained))
    cache, said = tmp_path / "cache", []
    decode_files(cells[-1].scenarios, cache, said.append)
    decode_files(cells[-1].scenarios, cache, said.append)
    assert said == [f"decoding the image files of {root}, once for all cells"]
    shutil.rmtree(root)
    draws._read.cache_clear()
    assert run_cells(cells, store, cache=cache).failures == []


def test_two_processes_decode_once(trained, photographs, tmp_path):
    script = """
import sys
from ncttt.benchmark import draws
from test_image_files import grid_on, cells_of
from pathlib import Path
decoded, decode_hashed = [], draws.decode_hashed
draws.decode_hashed = lambda *a: decoded.append(a[0]) or decode_hashed(*a)
scenario = cells_of(grid_on(Path(sys.argv[1]), sys.argv[2]))[-1].scenarios[0]
print("ready", flush=True)
sys.stdin.readline()
scenario.images(Path(sys.argv[3]))
print(len(decoded))
"""
    command = [sys.executable, "-c", script, str(photographs), trained, str(tmp_path / "cache")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": Path(__file__).parent}
    both = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(int(process.communicate()[0]) for process in both) == [0, SPLITS["test"]]


def test_files_that_change_under_a_grid_are_refused_and_leave_nothing(trained, tmp_path, store):
    root = write_photographs(tmp_path / "photographs")
    cells = cells_of(grid_on(root, trained))
    Image.new("RGB", (40, 40)).save(root / "test/dark/29.jpg")
    with pytest.raises(ncttt.InputError, match="not those that the grid was made for"):
        run_cells(cells, store)
    assert list((store.path.parent / "images").glob("*.npy")) == []
    assert run_cells(cells_of(grid_on(root, trained)), store).failures == []


def test_a_file_that_cannot_be_read_is_told_before_anything_is_measured(trained, tmp_path, capsys):
    root = write_photographs(tmp_path / "photographs")
    (root / "test/dark/29.jpg").write_bytes(b"no image")
    entries = f'[{{"method": "source", "checkpoint": "{trained}"}}]'
    command = ["bench", "--data", str(root), "--corruptions", '["clean"]', "--methods", entries, "--executor", "here"]
    assert main([*command, "--store", str(tmp_path / "rows.sqlite")]) == 2
    assert "29.jpg: cannot be read as an image" in capsys.readouterr().err.splitlines()[-1]


def test_images_are_read_in_pieces(trained, photographs, tmp_path, monkeypatch):
    whole = [np.array(cell.scenarios[0].images(tmp_path / "a")) for cell in cells_of(grid_on(photographs, trained))]
    monkeypatch.setattr(draws, "PIECE_VALUES", 7 * 32 * 32 * 3)
    draws._read.cache_clear()
    cells = cells_of(grid_on(photographs, trained))
    for cell, images in zip(cells, whole, strict=True):
        assert np.array_equal(cell.scenarios[0].images(tmp_path / "b"), images)
    assert draws.slices((30, 32, 32, 3))[1] == slice(7, 14)


def test_the_images_are_never_all_in_memory(trained, photographs, tmp_path, monkeypatch):
    count = 1000
    files = sorted((photographs / "test").rglob("*.*g"))
    lines = [f"{files[number % len(files)]} {number % 2}" for number in range(count)]
    (tmp_path / "many/test").mkdir(parents=True)
    (tmp_path / "many/test/image_list.txt").write_text("\n".join(lines))
    monkeypatch.setattr(draws, "PIECE_VALUES", 10 * 32 * 32 * 3)
    cells = cells_of(grid_on(tmp_path / "many", trained))
    tracemalloc.start()
    images = cells[-1].scenarios[0].images(tmp_path / "cache")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert images.shape == (count, 32, 32, 3)
    assert peak < images.nbytes / 2


def test_arrays_are_not_resized(tmp_path, checkpoint):
    entry = Entry(method="source", checkpoint=checkpoint)
    plain = Grid(data="digits", methods=[entry], images=20, corruptions=["clean"])
    asked = replace(plain, image_size=64, resize="crop")
    assert [cell.key for cell in cells_of(asked)] == [cell.key for cell in cells_of(plain)]


WRONG = [
    ({"resize": "stretch"}, r"resize must be 'square', 'crop' or 'crop\(R\)'.*found 'stretch'"),
    ({"image_size": 0}, "image_size must be a number of pixels from 1, found 0"),
    ({"resize": "crop(31)"}, "a shorter side of 31 pixels, too few to cut 32 out of it"),
    ({"image_size": 64}, "was made for images of 32x32; those of .* are 64x64"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_what_cannot_be_is_one_clear_line(trained, photographs, changes, message):
    with pytest.raises(ncttt.InputError, match=message):
        cells_of(grid_on(photographs, trained, **changes))


def test_checkpoints_of_different_sizes_or_ways(photographs, tmp_path):
    small, large = untrained(tmp_path / "small", 32), untrained(tmp_path / "large", 64)
    other = untrained(tmp_path / "other", 32, "crop")
    with pytest.raises(ncttt.InputError, match=r"small was trained with image_size 32, .*large with 64: make a grid"):
        cells_of(grid_on(photographs, [small, large]))
    with pytest.raises(ncttt.InputError, match=r"small was trained with resize square, .*other with crop\(37\): give"):
        cells_of(grid_on(photographs, [small, other]))
    assert len(cells_of(grid_on(photographs, [small, other], resize="square"))) == 8
    assert len(cells_of(grid_on(photographs, large))) == 4


def test_sizes_that_no_corruption_has_constants_for(photographs, tmp_path):
    tiny = untrained(tmp_path / "tiny", 16)
    with pytest.raises(ncttt.InputError, match="16 x 16 pixels; expected sides from 32 to 224"):
        cells_of(grid_on(photographs, tiny))
    assert len(cells_of(grid_on(photographs, tiny, corruptions=["clean"]))) == 2


@pytest.mark.parametrize(("settings", "message"), [({"resize": "stretch"}, "found 'stretch'"), ({}, None)])
def test_a_tuning_on_folders(trained, photographs, settings, message):
    tuning = Tuning(data=str(photographs), checkpoint=trained, method="ptbn", adapted={"norm": ["batch"]}, **settings)
    if message is None:
        check_tuning(tuning, None)
        return
    with pytest.raises(ncttt.InputError, match=message):
        check_tuning(tuning, None)
